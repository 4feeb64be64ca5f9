"""Tests of website/: the pages, the reference, the site."""
