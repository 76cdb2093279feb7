"""Changes of a whole task as one sequence that can be stopped and gone on with.

ordered        all sources of a task by their sequence, sorted on disk
delivery       what is handed out: a whole transaction, and the state behind it
"""
