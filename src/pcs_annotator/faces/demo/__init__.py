"""The tour of `pcs demo`: invented news, the embedded model, rewrites by rule."""
