select column_name as column_name,
  case
    when data_type = 'NUMBER' and data_precision is not null
      then 'NUMBER(' || data_precision || ',' || data_scale || ')'
    when data_type in ('CHAR', 'NCHAR', 'VARCHAR2', 'NVARCHAR2') then data_type || '(' || char_length || ')'
    else data_type
  end as type_name,
  1 as exact,
  1 as keyed
from all_tab_cols
where owner = {schema_text} and table_name = {log_text} and user_generated = 'YES'
order by column_id nulls last, internal_column_id
/
