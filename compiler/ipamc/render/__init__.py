"""Renders a plan as verified YAML texts by path; chooses no block and writes no file."""
