"""What nodes still need in, a plan with their new blocks or findings out; changes no block that is held."""
