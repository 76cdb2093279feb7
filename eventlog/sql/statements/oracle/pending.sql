decode({status}, 'N', {record_id}) is not null and {usable}
/
