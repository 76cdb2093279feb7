begin dbms_flashback.enable_at_system_change_number({snapshot}); end;
/
