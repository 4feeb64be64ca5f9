"""Findings, plans and answers in, text out: one module a format. Decides nothing, writes to no file."""
