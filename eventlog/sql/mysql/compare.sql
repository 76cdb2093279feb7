-- known_next --
-- Keeps to what the event of an object leads that is known already; many such rows go as one insert.
insert into {known} (object_table, key_hash, object_key, next_digest, next_values, first_id, last_id)
values (:object_table, :key_hash, '', :next_digest, :next_values, :first_id, :last_id)
on duplicate key update
  next_digest = values(next_digest), next_values = values(next_values),
  first_id = values(first_id), last_id = values(last_id), failed = 0

-- known_put --
-- Keeps what the receiver has of an object, and to what its event leads, in place of what was kept of it.
insert into {known} (object_table, key_hash, object_key, digest, row_values, next_digest, next_values, first_id, last_id)
values (:object_table, :key_hash, :object_key, :digest, :row_values, :next_digest, :next_values, :first_id, :last_id)
on duplicate key update
  object_key = values(object_key), digest = values(digest), row_values = values(row_values),
  next_digest = values(next_digest), next_values = values(next_values),
  first_id = values(first_id), last_id = values(last_id), failed = 0

-- compare_digests --
-- The rows of each segment and sums of their hashes' halves; no number of rows if a text exceeds max_allowed_packet.
{functions}select h.segment, case when count(*) = count(h.hash) then count(*) end,
  sum(cast(conv(substr(h.hash, 1, 16), 16, 10) as unsigned)),
  sum(cast(conv(substr(h.hash, 17, 16), 16, 10) as unsigned))
from (select {segment} as segment, {digest} as hash from {source} t where {within}) h
group by h.segment

-- compare_segments --
-- This product has no faster hash.
@compare_digests
