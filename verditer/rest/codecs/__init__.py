"""Wire forms of bodies, headers and identifiers: text to values and back."""
