"""Runs of ipamc that end where nobody expects it: killed, on a full or read-only disk, beside another run, on another branch (`make crash`)."""
