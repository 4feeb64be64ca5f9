"""What must be true of a change, in modules that need only the standard library and each other."""
