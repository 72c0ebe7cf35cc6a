"""The paper's research questions, answered from recorded votes."""
