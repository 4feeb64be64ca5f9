"""Tests of place/."""
