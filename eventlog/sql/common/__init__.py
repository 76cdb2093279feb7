"""What all dialects share: what a dialect is, its types, and the statements that all databases run."""
