"""What `ipamc ci apply` may write: live and rendered objects in, decisions out. Pure, without kubectl."""
