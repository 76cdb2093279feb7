"""What comes in: log rows and current rows as DataFrames, and how they travel through the shuffle."""
