"""`report.html`: a self-contained page with the question, the results and how far to trust them."""
