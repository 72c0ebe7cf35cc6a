"""Pure functions of scores and gold: figures of merit, bootstrap intervals, significance tests."""
