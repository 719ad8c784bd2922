"""The laws of `Game`: what a game is asked, and the sentences about answers that break one."""
