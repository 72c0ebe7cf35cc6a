"""How much the embedded model takes at a time."""

# The model was trained on 8,192; attention in numpy gets slow, and its answers poor, long before.
CONTEXT_TOKENS = 2048
