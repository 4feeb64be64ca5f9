"""Renders a plan report as text: one module for each format. Compares nothing, and writes to no file."""
