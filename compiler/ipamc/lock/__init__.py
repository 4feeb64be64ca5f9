"""The text of a lock in, its lines or findings out, and back to text; reads no file and places no block."""
