"""What a release needs: a build that is the same everywhere, a try of what was built, its text, the state that upgrades are held against."""
