-- snapshot --
-- Begins a transaction that sees one moment and writes nothing.
set transaction read only

-- log_position --
-- The last record_id that the log's sequence gave, and whether it gave any.
select last_number - 1, 1 from all_sequences
where sequence_owner = {schema_text} and sequence_name = {log_sequence_text}

-- advance_position --
-- Sets the log's sequence past a record_id.
alter sequence {log_sequence} restart start with {next}
