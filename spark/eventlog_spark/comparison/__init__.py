"""What changed between two states on Spark: the differences that one machine finds, in its order."""
