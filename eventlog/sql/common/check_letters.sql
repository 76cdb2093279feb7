select {status}, count(*) from {log} group by {status}
/
