"""Tests of lock/."""
