select sys_context('USERENV', 'SESSIONID') from dual
/
