-- known_put --
-- Keeps what the receiver has of an object, and to what its event leads, in place of what was kept of it.
begin
  delete from {known} where object_table = :object_table and key_hash = :key_hash;
  insert into {known} (object_table, key_hash, object_key, digest, row_values, next_digest, next_values, first_id, last_id)
  values (:object_table, :key_hash, :object_key, :digest, :row_values, :next_digest, :next_values, :first_id, :last_id);
end;
