"""From the name of a game to the game with all that goes with it: found, loaded, wrapped, tried."""
