"""`--executor batch`: waves of calls at the providers' batch APIs."""
