"""Rules that rebuild a clause: the other voice, and the cleft."""
