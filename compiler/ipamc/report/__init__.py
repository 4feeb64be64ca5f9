"""Findings, plans and tables in, text out; writes to no file and no terminal."""
