"""What a repository needs besides its program: benchmarks, releases, the site, the demo."""
