alter sequence {log_sequence} restart start with {next}
/
