"""How full the pools are, as text: one module a format. Counts nothing, and writes to no file."""
