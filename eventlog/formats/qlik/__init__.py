"""Qlik Replicate and Qlik Talend Data Integration: change tables, and the messages of a Kafka target."""
