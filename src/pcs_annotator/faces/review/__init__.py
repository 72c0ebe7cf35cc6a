"""The review page: rows that need a person, one at a time, by keyboard; served to the browser from this machine."""
