delete {failed} from {wanted_ids}
straight_join {failed} on record_id = wanted.id
/
