"""What comes in and goes out: files and DataFrames, how rows travel, parts and the folders of them."""
