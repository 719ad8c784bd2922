"""The games that come with the framework, a folder each."""
