"""Rules that rebuild a clause in the other voice."""
