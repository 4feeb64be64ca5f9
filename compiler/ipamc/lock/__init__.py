"""Parses the text of a lock into lines or findings, and writes it; reads no file and places no block."""
