"""The statements, by dialect, and how their holes are filled."""
