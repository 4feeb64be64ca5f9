"""Findings, plans and answers in, text out: one module a format.

Decides nothing, and writes to no file and no terminal.
"""
