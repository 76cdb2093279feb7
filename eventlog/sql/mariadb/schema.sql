-- 0004_association --
-- Adds how associations are written.
alter table {state} add column if not exists association {type_word}
/
update {state} set association = '{association}' where association is null
/

-- known_epoch --
-- Adds the epoch whose leader knew how rows are finished, and its check.
-- whoever begins an epoch says that it knows the mode: the statement of an older version does not
alter table {state} add column if not exists known_epoch bigint,
  add constraint if not exists {state_known} check (known_epoch = epoch)

-- 0008_overtaken --
-- Adds of which object a failed row is, and whether it was overtaken by rows that are gone.
-- the SHA-256 of table_name, a zero byte, table_key
alter table {failed} add column if not exists object_hash char(64)
/
alter table {failed} add column if not exists overtaken {type_flag}
/
create index if not exists {failed_way} on {failed} (object_hash)
/
