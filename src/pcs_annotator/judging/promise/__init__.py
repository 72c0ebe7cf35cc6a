"""Which labels to accept: thresholds with a promised error rate, certificates, audits, drift, reasons."""
