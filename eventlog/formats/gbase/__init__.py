"""GBase 8s and Informix change data capture: the binary stream, read and written to the last byte."""
