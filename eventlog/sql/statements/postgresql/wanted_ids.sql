unnest(cast(translate(:ids, '[]', '{}') as bigint[])) as wanted(id)
/
