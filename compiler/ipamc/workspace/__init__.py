"""Clusters on disk and in git revisions: the only room that does I/O; prints nothing."""
