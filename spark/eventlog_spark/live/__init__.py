"""Logs and topics that go on while a job runs: frozen first, settled when the output is out."""
