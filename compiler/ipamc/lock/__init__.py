"""The lock file: its text in, records and findings out; places no block."""
