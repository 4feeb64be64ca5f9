"""Values that all stages share, and questions about them; reads and writes nothing, imports no other room."""
