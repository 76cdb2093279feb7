"""From a table to its triggers: the catalogue, what is tracked, the triggers as text, and what is wrong with
them."""
