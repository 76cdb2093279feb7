select column_name as column_name, column_type as type_name,
  case when extra like '%VIRTUAL%' then 1 else 0 end as `virtual`
from information_schema.columns
where table_schema = :schema and table_name = :table_name
order by ordinal_position
/
