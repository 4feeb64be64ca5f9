"""Values that all stages share: no input is read here and nothing is written; imports nothing of ipamc outside this room."""
