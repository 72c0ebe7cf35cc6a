"""What a run is and does: its folder, settings, votes, gold labels and reviews."""
