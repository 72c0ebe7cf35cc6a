"""`report.html`: one file that says what was asked, what came out and how far to trust it."""
