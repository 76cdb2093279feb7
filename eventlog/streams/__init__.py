"""Changes of a whole task as one sequence that can be stopped and gone on with.

delivery       what is handed out: a whole transaction, and the state behind it
"""
