"""Three versions of a lock in, one out; places no block."""
