"""Streams of Spark: messages of topics into tables; a log in a database, one pick-up after another."""
