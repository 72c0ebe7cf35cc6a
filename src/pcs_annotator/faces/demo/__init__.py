"""The tour: invented news, the embedded model, rewrites by rule."""
