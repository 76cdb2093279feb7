"""Changes of one table as columns, from readers of many records to the writers of their lines.

The plain readers and writers are the reference. They read every distinct header, mask and odd value, and show
what a field adds to a line. A change whose line is not certain goes their way itself.

batch          the changes of one table as columns, which any format can fill
values         the cells of a column as texts of the model's values
table_rows     rows of a change table of Qlik as such a batch
message_rows   messages of Qlik as such a batch
masks          the masks of both, each read once
lines          the lines of a batch, of any form
xds_lines      the form of a line that is a document
neutral_lines  the form of a line that is JSON
change_rows    the form of a row with that line
"""
