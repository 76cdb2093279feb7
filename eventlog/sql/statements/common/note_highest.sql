update {state} set highest_id = :highest where one = 1 and (highest_id is null or highest_id < :highest)
/
