"""The site of the documentation: its look in `theme/`, `build` that makes it, and in `reference/` the generator of docs/reference/."""
