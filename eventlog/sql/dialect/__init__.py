"""What is different between the databases and is a value: types, limits, how values become texts."""
