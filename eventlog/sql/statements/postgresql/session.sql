set time zone 'UTC'
/
set datestyle to 'ISO, YMD'
/
set intervalstyle to 'postgres'
/
set bytea_output to 'hex'
/
set extra_float_digits to 1
/
