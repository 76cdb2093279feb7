"""Where changes go, besides files.

topics     messages to topics, and what topics hold already
tables/    rows of tables in a database
"""
