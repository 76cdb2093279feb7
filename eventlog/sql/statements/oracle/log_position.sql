select last_number - 1 from all_sequences
where sequence_owner = {schema_text} and sequence_name = {log_sequence_text}
/
