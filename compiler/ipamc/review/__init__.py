"""A plan or a lock in, answers about it out; changes nothing."""
