-- known_counts --
-- How many objects of each table stand in the state, and how many should.
select k.object_table, count(case when k.key_hash <> 'base' then 1 end),
  max(case when k.key_hash = 'base' then sys.dbms_lob.substr(k.row_values, 2000, 1) end)
from {known} k
group by k.object_table

-- known_put --
-- Keeps what the receiver has of an object, and to what its event leads, in place of what was kept of it.
begin
  delete from {known} where object_table = :object_table and key_hash = :key_hash;
  insert into {known} (object_table, key_hash, object_key, digest, row_values, next_digest, next_values, first_id, last_id)
  values (:object_table, :key_hash, :object_key, :digest, :row_values, :next_digest, :next_values, :first_id, :last_id);
end;
