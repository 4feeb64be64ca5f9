"""What nodes still need in, a plan with their new blocks out, or findings; changes no block that a node holds."""
