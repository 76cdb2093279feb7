"""The care of a log besides publishing: see its state, explain, redrive, skip, purge, deliver."""
