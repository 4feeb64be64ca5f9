"""The use of blocks to what nodes get and give back: `ipamc resize`."""
