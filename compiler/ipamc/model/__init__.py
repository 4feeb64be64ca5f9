"""Values that all stages share: this room reads nothing, writes nothing and imports no other room."""
