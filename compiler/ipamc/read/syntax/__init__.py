"""Converts bytes to documents of plain values, and finds positions of values; knows no kind of document."""
