"""The event log in a database: its dialects, its DDL as text, and the log as a store."""
