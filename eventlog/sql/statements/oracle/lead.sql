select one from {lock} for update skip locked
/
