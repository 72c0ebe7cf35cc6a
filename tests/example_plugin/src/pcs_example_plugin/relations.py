"""A relation in somebody else's package."""

from pcs_annotator import relation


@relation("whispered")
def whispered(text: str) -> str:
    """Return the text in small letters."""
    return text.lower()
