select {utc_now}{dual}
/
