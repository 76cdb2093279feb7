select epoch from {state} where one = 1 {share_lock}
/
