"""Other people's search beside ours, on the same positions: `python -m benchmarks.peers`."""
