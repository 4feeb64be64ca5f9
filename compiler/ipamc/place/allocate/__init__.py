"""What is needed in, blocks out; changes no block that is kept."""
