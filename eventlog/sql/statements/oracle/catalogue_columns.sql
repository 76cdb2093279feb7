-- invisible columns are columns too; what the database adds for itself is none
select column_name as column_name,
  case
    when data_type = 'XMLTYPE' and data_type_owner in ('SYS', 'PUBLIC') then data_type
    when data_type_owner is not null then 'OBJECT ' || data_type_owner || '.' || data_type
    when data_type = 'NUMBER' and data_precision is not null
      then 'NUMBER(' || data_precision || ',' || data_scale || ')'
    when data_type = 'NUMBER' and data_scale = 0 then 'NUMBER(38,0)'
    when data_type in ('CHAR', 'NCHAR', 'VARCHAR2', 'NVARCHAR2') then data_type || '(' || char_length || ')'
    when data_type = 'RAW' then data_type || '(' || data_length || ')'
    else data_type
  end as type_name,
  case virtual_column when 'YES' then 1 else 0 end as virtual
from all_tab_cols
where owner = :schema and table_name = :table_name and user_generated = 'YES'
order by column_id nulls last, internal_column_id
/
