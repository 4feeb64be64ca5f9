"""A plan report in, text out: one module a format. Compares nothing, and writes to no file."""
