"""Does a rewrite still mean the same? Each check looks for one way in which it might not."""
