{perpetrator} = :driver_user
/
