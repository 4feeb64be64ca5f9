"""Tests of report/."""
