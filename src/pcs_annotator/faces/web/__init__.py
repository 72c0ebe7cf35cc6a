"""What the review page and the HTTP service share: a guard in front of the app, and the server that runs it."""

from importlib.util import find_spec

from pcs_annotator.base.errors import MissingPackage


def need_web(command: str) -> None:
    """Raise if the packages of the extra `web` are missing; call it before importing anything from this folder."""
    if not all(map(find_spec, ("starlette", "uvicorn", "httptools"))):
        raise MissingPackage(f"{command} needs the extra web: pip install 'perceived-confidence[web]'")
