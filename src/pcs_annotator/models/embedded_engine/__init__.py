"""A small language model in numpy: model file, forward pass, prompts, and answers in batches."""

from typing import Literal

Style = Literal["chat", "plain"]
INSTALL = "pip install 'perceived-confidence[local]'"
# The model was trained on 8,192 tokens; long before that, attention in numpy gets slow and answers get poor.
CONTEXT_TOKENS = 2048
