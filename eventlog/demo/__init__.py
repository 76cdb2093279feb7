"""The demo: a database of its own, a few changes, and what they become, step by step."""
