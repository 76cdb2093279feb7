"""Where changes go.

records              records of a format: one output, a place, or parts with the state after each
kafka_parts          parts as messages in topics
kafka_writing        messages to topics; `topic_state` what the topics hold already
tables/              rows of tables in a database
"""
