"""The law of a change."""
