"""The original driver: its parameters, its exported configuration, and our corresponding settings."""
