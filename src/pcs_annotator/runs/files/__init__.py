"""Files that users give to the library and files that it writes for them."""
