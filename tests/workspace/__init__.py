"""Tests of workspace/."""
