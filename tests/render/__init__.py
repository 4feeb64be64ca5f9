"""Tests of render/."""
