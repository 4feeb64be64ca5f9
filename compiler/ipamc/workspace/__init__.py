"""Clusters on the disk and in git commits: folders and revisions come in, `Source`s and texts go out.

This is the only room that does I/O: files, git, kubectl, HTTP, processes, environment variables, the clock.
It prints nothing and knows no options.
"""
