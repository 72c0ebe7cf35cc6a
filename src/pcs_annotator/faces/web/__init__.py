"""What the review page and the HTTP service share: a guard in front of the app, and the server that runs it."""

from importlib.util import find_spec

from pcs_annotator.base.errors import MissingPackage

PACKAGES = {"web": ("starlette", "uvicorn", "httptools"), "mcp": ("mcp",)}


def need_web(command: str, extra: str = "web") -> None:
    """Raise if the packages of an extra are missing; call it before importing anything from this folder."""
    if not all(map(find_spec, PACKAGES[extra])):
        raise MissingPackage(f"{command} needs the extra {extra}: pip install 'perceived-confidence[{extra}]'")
