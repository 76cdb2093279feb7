"""The event log as a schema: its migrations, online and as text."""
