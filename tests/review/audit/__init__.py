"""Tests of `review/audit/`."""
