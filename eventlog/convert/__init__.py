"""Any format to any format.

conversion   from the inputs of a job to its output, and what was left out on the way
places       where some formats stand besides files: topics, tables of a database
current      current rows from files
by_row       files of log rows as one pick-up, row by row
by_column/   the same in columns, for logs of any size
streaming    what is read on from a state, written part after part
deliveries   any source as whole transactions, with states to go on from
"""
