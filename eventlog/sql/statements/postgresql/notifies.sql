select current_setting('max_prepared_transactions') = '0'
/
