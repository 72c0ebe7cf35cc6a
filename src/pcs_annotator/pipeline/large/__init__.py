"""Tables larger than memory."""
