select max(notice_id) from {notice}
/
