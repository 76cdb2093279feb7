select p.user, cast(h.id as char), concat('from ', p.host)
from (
  select is_used_lock(concat('eventlog ', sha1(concat(coalesce({schema_text}, ''), '.', {log_text})))) as id
) h
left join information_schema.processlist p on p.id = h.id
where h.id is not null
/
