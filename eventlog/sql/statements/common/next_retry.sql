select min(next_at), count(*) from {retry}
/
