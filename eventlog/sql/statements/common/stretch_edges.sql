select min({id}), max({id}) from {log} r where {record_id} > :after and {record_id} <= :upto and {usable}
/
