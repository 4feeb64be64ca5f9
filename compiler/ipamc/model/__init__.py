"""Values that all stages share, and pure questions to them: reads no input, writes nothing, imports nothing of ipamc from outside this room."""
