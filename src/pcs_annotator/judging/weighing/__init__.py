"""What each vote is worth: scores (Eq. 1 and 2), optimisers, cross-fitting, calibration."""
