f.reason like :reason escape '!'
/
