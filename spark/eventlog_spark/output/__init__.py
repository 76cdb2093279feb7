"""What tasks write and tell, and how the output folder appears: whole, once, or not at all."""
