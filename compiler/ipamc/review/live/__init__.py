"""Decides what `ipamc ci apply` may write, from live and rendered objects. Pure, without kubectl."""
