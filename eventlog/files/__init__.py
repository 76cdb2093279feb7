"""Containers: the outer form of files, whatever their format.

csv, jsonlines, parquet, messages   one container each, both directions
inputs         names on the command line become sources; `limits` what one may hold
outputs        written records become files, which appear only when they are complete
output_files   one file: whole at once, growing, or standard output
document_folder  the names and the record of the files sink
durable        what stays when the machine stops
small_files    settings, tables, secrets
signals        what ends a run, or a sleep; `ready` waits for streams
current_files  current rows, which query-back events read
stores         items beyond what memory holds, by part or sorted; `arrow_stores` record batches
"""
