"""The demo: a database of its own, a few changes, and what becomes of them, told step by step."""
