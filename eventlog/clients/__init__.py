"""Clients of servers, for both programs: `http_client`; `topic_reader` for Kafka, with its settings."""
