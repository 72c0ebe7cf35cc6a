"""`pcs compare`: two runs, or parts of runs, on the same rows; no model is called."""
