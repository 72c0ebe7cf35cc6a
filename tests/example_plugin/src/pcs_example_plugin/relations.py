"""A relation in a third-party package."""

from pcs_annotator import relation


@relation("whispered")
def whispered(text: str) -> str:
    """Return the text in lower case."""
    return text.lower()
