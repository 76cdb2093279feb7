"""What is special to MariaDB."""
