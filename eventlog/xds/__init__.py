"""nds documents: written as text, read as a stream, and the receiver's answers."""
