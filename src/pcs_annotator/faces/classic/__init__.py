"""The paper's class `PCS`, with its dataset, its annotations file and what it saves."""
