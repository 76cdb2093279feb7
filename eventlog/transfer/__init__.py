"""Changes travel: from a source to a target, by one loop.

loop      the loop, which hands the deliveries of a source to a target
job       what is read and written, and how; `report` what was left out
places    the registry: who reads and writes a format besides in files
opening   what a job reads: a source from its beginning, or from a state
targets   where a job writes: at once, or part after part
convert   any format to any format; `apply` the changes of any format to rows of tables
signals   what ends a run
"""
