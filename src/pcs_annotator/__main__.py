"""`python -m pcs_annotator` is `pcs`."""

from pcs_annotator.faces.cli.main import run

if __name__ == "__main__":
    run()
