{letter} in ('E', 'F') and {usable}
/
