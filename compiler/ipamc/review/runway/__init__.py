"""How long the room of a pool lasts, by the history of its lock. `docs/runway.md` has the method with an example."""
