"""Values that all stages share, without input or output: reads nothing, writes nothing, imports no other room of ipamc."""
