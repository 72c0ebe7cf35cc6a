"""Charts as inline SVG: one drawing for the page and for a file, with axes that can be read on a phone."""
