"""Reads the moves and boards that people and other programs write."""
