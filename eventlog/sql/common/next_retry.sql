select min(next_at), count(*) from {waiting}
/
