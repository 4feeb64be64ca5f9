"""What a plan changes in, text out: one module a format."""
