select sys_context('USERENV', 'SESSION_USER') from dual
/
