"""Tests of assertions/."""
