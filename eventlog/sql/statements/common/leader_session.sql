select leader_session from {state} where one = 1
/
