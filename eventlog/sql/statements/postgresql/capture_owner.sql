alter function {function}() owner to {owner}
/
