select pg_try_advisory_lock((1702257260 :: bigint << 32) | cast(cast('{log}' as regclass) as oid) :: bigint)
/
