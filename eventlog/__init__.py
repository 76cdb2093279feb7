"""A change is read from wherever a database left it, folded to what it means for each object,
and written in the form its consumer expects."""

__version__ = "0.1.0"
