update {state} set cycle_at = {utc_now}, cycle_facts = :facts where one = 1
/
