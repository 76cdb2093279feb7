declare
  ids text := pg_catalog.pg_get_serial_sequence({log_name_text}, {record_id_text});
begin
  if ids is not null then execute 'grant select on sequence ' || ids || ' to ' || {role_text}; end if;
end
/
