"""What people do to a log beside publishing it: see how it stands, explain, try again, let go, clear,
deliver."""
