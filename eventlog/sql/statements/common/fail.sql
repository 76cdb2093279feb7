insert into {failed} (record_id, event_id, reason, document, tries)
values (:record_id, :event_id, :reason, :document, :tries)
/
