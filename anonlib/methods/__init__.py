"""The recipes: one file per published method, a page each."""
