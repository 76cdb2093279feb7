alter table {state} add column if not exists leader_session text
/
alter table {state} add column if not exists highest_id bigint
/
