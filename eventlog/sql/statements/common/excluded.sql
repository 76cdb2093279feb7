{is_new} and case when {usable} then 1 else 0 end = 0
/
