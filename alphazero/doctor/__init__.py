"""Examines an installation or a run folder, and changes neither."""
