"""`--executor ray`: workers on a cluster."""
