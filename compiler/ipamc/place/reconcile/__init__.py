"""Lock and inventory in, what is kept and what is needed out; gives out no new block."""
