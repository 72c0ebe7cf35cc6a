"""The interfaces that people use: command line, Python functions, the paper's class, the classifier."""
