select a.usename, cast(l.pid as text), 'application ' || nullif(a.application_name, '')
from pg_catalog.pg_locks l
left join pg_catalog.pg_stat_activity a on a.pid = l.pid
where l.locktype = 'advisory' and l.granted and l.objsubid = 1
  and l.database = (select d.oid from pg_catalog.pg_database d where d.datname = current_database())
  and l.classid = 1702257260 and l.objid = cast('{log}' as regclass)
/
