"""Bytes in, documents of plain values and the positions of values out; knows no kind of document."""
