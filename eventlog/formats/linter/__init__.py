"""LINTER's replication queues: DISPATCH_QUEUE and RECEIVING_QUEUE, read and written row by row."""
