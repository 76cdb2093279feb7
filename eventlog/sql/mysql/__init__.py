"""What is special to MySQL."""
