select {letter}, count(*) from {log} r group by {letter}
/
