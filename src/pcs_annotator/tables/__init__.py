"""Any table in and out: files, frames, spreadsheets, standard input."""
