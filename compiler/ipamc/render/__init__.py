"""A plan in, verified YAML out; decides nothing about blocks."""
