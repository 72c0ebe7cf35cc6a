"""From labels to conclusions: shares, differences and regressions that machine labels do not bias."""
