-- not a join: the planner would rather read all that is pending, where statistics are old
{record_id} = any (cast(translate(:ids, '[]', '{}') as bigint[]))
/
