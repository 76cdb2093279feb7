select session_user
/
