"""How long tests wait."""

PATIENCE = 900.0
"""Seconds after which a program that a test has started hangs: it may compile first, on a machine that is busy."""
