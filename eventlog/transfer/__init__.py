"""Changes travel: from a source to a target, by one loop.

loop      the loop, which hands the deliveries of a source to a target
job       what is read and written, and how: it decides its two ends; `report` what was left out
connectors  an endpoint of a job, and the registry: who reads and writes a format besides in files
settings_by_name  from which each part takes the settings that it declares
opening   what is read: a source from its beginning, or from a state
job_output  where changes are written: at once, or part after part
convert   any format to any format; `apply` the changes of any format to rows of tables
ways      which jobs of `convert` go by column; `change_files/` change tables by column
formats   the registry of formats, which no format imports
sources/  where changes come from, `targets/` where they go besides files, `log_files/` files of log rows
"""
