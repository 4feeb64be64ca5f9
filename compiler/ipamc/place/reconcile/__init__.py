"""Compares lock and inventory: which lines are kept, and what is needed; gives out no new block."""
