"""The parts around the loop of a run, each with one job."""
