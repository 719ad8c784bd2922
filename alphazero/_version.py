"""The version of the framework; setup.py reads it here."""

__version__ = "0.1.0"
