"""Bytes in, documents of plain values and the positions of values out; knows no kind of document."""

from ipamc import on_demand

on_demand(__name__, "json_stream")
