"""Spark itself: a session, a Java for it, and how far its tasks are."""
