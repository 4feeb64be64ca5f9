"""Model and lock in, blocks for every node out; reads no file and writes no text."""
