-- compare_changed --
-- The rows of a table whose values are not those that the receiver is known to have.
select n.key_text, {key_hash} as key_hash, n.digest, k.object_key, k.digest,
  (select v.row_values from {known} v where v.object_table = :object_table and v.key_hash = cast({key_hash} as char(32))) as row_values,
  k.failed{texts}
from (
  select h.*, {digest} as digest
  from (select {key_text} as key_text{expressions} from {source} t{apart}) h
) n
left join {known} k on k.object_table = :object_table and k.object_key = n.key_text and k.key_hash <> 'base'
where k.object_key is null
  or (k.first_id is null and k.digest <> n.digest)
  or (k.failed = 1 and (k.next_digest is null or k.next_digest <> n.digest))

-- compare_gone --
-- The objects that the receiver is known to have and the table lacks.
select k.object_key, k.key_hash, k.digest, k.row_values
from {known} k
where k.object_table = :object_table and k.key_hash <> 'base'
  and (k.first_id is null or (k.failed = 1 and k.next_digest is not null))
  and not exists (
    select null from (select {key_text} as key_text from {source} t) n where n.key_text = k.object_key)
