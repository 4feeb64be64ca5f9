"""Decides what `ipamc apply` may write, from live and rendered objects. Pure, without kubectl."""
