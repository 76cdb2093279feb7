-- functions of no role of their own
select null as owner, 0 as almighty from dual where :schema is null and :table_name is null
/
