"""Random histories of a cluster: the machine that makes them, its world, and what must hold after each step."""
