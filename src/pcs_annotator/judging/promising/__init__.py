"""What can be accepted: thresholds with a promised error rate, certificates, audits, drift, reasons."""
