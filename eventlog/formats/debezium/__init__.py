"""Messages of Debezium in JSON, with and without schemas."""
