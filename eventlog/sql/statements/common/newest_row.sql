select max({record_id}) from {log}
/
