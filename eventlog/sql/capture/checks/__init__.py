"""What `check` looks at: the rows of the log, the log itself, the tables that are tracked."""
