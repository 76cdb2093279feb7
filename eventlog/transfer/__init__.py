"""Changes travel: from a source to a target, by one loop.

loop      the loop, which hands the deliveries of a source to a target
places    the registry: who reads and writes a format besides in files
opening   what a job reads: a source from its beginning, or from a state
once      sources that are read from their beginning
given     the settings of a job, as its surroundings complete them
convert   any format to any format; `apply` the changes of any format to rows of tables
explain   what becomes of each row of a log, and of each record of change tables
"""
