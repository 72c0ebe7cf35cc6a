"""`python -m pcs_annotator` is `pcs`."""

from perceived_confidence import run

if __name__ == "__main__":
    run()
