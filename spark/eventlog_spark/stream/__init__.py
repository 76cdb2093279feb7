"""Streams of messages: whole transactions out of Structured Streaming's state, and tables that take them."""
