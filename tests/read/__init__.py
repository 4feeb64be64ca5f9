"""Tests of read/."""
