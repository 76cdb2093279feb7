select association from {state} where one = 1
/
