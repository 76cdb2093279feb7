-- finish --
-- Gives new rows their letter.
-- by the key alone: another way reads, and locks, what writers have open
update {wanted_ids}
straight_join {log} r {by_key} on {record_id} = wanted.id and {is_new}
set r.{raw_status} = :letter

-- remove --
-- Deletes new rows that were handled.
-- by the key alone: another way reads, and locks, what writers have open
delete r from {wanted_ids}
straight_join {log} r {by_key} on {record_id} = wanted.id and {is_new}

-- remove_range --
-- Deletes the new rows of a range, which were handled.
delete r from {log} r {by_key}
where {record_id} between :low and :high and {is_new}

-- forget_failure --
-- Forgets why rows failed.
delete {failed} from {wanted_ids}
straight_join {failed} on record_id = wanted.id
