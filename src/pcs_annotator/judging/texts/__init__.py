"""A model of the texts themselves, learned from gold."""
