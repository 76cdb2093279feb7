"""What tasks make of the sorted rows of their objects."""
