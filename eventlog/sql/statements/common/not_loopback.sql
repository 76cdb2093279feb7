({perpetrator} is null or {perpetrator} <> :driver_user)
/
