"""What `ipamc ci apply` may write: live objects, as kubectl prints them, and rendered ones in, decisions out."""
