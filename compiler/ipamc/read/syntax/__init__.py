"""Bytes in, documents of plain values and positions of values out; knows no kind of document."""
