{is_new} and {usable}
/
