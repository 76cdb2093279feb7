"""What is special to PostgreSQL."""
