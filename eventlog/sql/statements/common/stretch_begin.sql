select min({id}) from {log} r {use_index} where {pending}
/
