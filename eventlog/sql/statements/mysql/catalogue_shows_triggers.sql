-- rights that come by a role are not seen here
select grantee as grantee, current_user() as ours, privilege_type as privilege
from information_schema.user_privileges
union all
select grantee, current_user(), privilege_type
from information_schema.schema_privileges
where table_schema = :schema
union all
select grantee, current_user(), privilege_type
from information_schema.table_privileges
where table_schema = :schema and table_name = :table_name
/
