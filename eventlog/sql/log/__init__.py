"""The event log as a store: its names, what is read of it, and what the leader writes."""
