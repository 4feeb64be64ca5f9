"""What `ipamc ci apply` may write. Pure: objects as kubectl prints them and rendered ones in, decisions out."""
