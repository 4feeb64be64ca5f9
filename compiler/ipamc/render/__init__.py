"""A plan in, verified YAML texts by path out; chooses no block and writes no file."""
