"""`report.html`: one file that says what was asked, what came out and how far to trust it."""

from pcs_annotator.pipeline.report.page import render, write_report

__all__ = ["render", "write_report"]
