select left(user(), char_length(user()) - locate('@', reverse(user())))
/
