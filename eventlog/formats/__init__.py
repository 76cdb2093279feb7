"""A room for each format, which reads and writes its records. XDS documents are in a room of their own."""
