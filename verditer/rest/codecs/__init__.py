"""Bodies on the wire: XML documents to values and back."""
