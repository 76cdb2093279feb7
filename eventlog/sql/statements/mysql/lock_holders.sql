select p.user, cast(h.id as char), concat('from ', p.host)
from (
  select is_used_lock(concat('eventlog ', left(sha2(concat(coalesce({schema_text}, ''), '.', {log_text}), 256), 40))) as id
) h
left join information_schema.processlist p on p.id = h.id
where h.id is not null
/
