"""Converts bytes to documents of plain values, and finds positions of values; knows no kind of document."""

from ipamc import on_demand

on_demand(__name__, "json_stream")
