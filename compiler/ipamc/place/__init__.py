"""A cluster and its lock in, a plan with a block for every node out, or findings; reads no file and writes no text."""
