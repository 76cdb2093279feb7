"""The original driver: its parameters, its exported configuration, and our settings beside them."""
