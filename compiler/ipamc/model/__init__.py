"""Values that all stages share, and pure questions to them: reads and writes nothing, imports no other room."""
