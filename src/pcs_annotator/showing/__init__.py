"""How a result looks: report, findings, tables, plots."""
