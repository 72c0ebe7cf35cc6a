"""All kinds of models behind one small interface."""
