"""Tests of importing/."""
