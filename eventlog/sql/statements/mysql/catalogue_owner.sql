-- functions of no role of their own
select null as owner, 0 as almighty from (select 1 as one) as d where :schema is null and :table_name is null
/
