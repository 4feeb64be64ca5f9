"""Tables of prefixes as NetBox and spreadsheets write them (CSV): text to rows with lines and columns."""
