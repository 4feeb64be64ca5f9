"""Runbooks as text: Markdown for people, JSON for programs."""
