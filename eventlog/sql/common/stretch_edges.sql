select min({record_id}), max({record_id}) from {log} where {record_id} > :after and {record_id} <= :upto
/
