"""What is special to Oracle."""
