"""The commands about one game's rules and its exact results."""
