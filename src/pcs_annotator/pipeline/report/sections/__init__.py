"""The parts of the page, one per file; each turns a `View` into markup."""
