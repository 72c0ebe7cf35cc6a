"""Files: what is read from users and what is written for them."""
