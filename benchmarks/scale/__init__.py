"""How a run grows with its cluster: measured costs of the parts, and a simulation of machines that nobody here has."""
