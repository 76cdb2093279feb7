"""nds documents: vocabulary in nds.dtd, written as text, read as a stream, and the receiver's answers."""
