select highest_id from {state} where one = 1
/
