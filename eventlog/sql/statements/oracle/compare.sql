-- known_counts --
-- How many objects of each table stand in the state, and how many should.
select k.object_table, count(case when k.key_hash <> 'base' then 1 end),
  max(case when k.key_hash = 'base' then sys.dbms_lob.substr(k.row_values, 2000, 1) end)
from {known} k
group by k.object_table
