select min({record_id}) from {log} {use_index} where {pending}
/
