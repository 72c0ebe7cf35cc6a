"""Every reply ever paid for: in a file or on a server, who may write to it, and what was spent."""
