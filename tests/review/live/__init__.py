"""Tests of `review/live/`."""
