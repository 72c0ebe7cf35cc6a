"""Rules that take a sentence as one statement: two negations around it, and who said it."""
