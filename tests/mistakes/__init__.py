"""Plausible mistakes, what ipamc answers, and that the way out that it names is one. A page for each subject."""
