"""Places the blocks that nodes still need, or returns findings; changes no block that is held."""
