"""`ipamc resize`: decides from the use of blocks which ones nodes get and give back."""
