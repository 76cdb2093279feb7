delete from {held}
where object_hash = :object_hash
  and not exists (select null from {retry} r where r.object_hash = :object_hash)
/
