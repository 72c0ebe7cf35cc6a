"""The engine: which calls to make and how fast, the ledger of paid calls, and the votes."""
