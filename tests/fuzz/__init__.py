"""Inputs that nobody would write: mutated case files, locks to merge and command lines, run in process and judged by laws (`make fuzz`)."""
