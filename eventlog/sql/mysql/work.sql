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

-- forget_tries --
-- Forgets the tries of rows.
delete {try} from {wanted_ids}
straight_join {try} on record_id = wanted.id

-- forget_answers --
-- Forgets the answers of batches that no try has any more.
delete a from {wanted_ids}
straight_join {answer} a on a.batch = wanted.id
left join {try} t on t.batch = a.batch and t.part = a.part
where t.batch is null

-- forget_failure --
-- Forgets why rows failed.
delete {failed} from {wanted_ids}
straight_join {failed} on record_id = wanted.id
