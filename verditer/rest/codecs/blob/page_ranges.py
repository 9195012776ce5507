"""The document of Get Page Ranges: ranges in order of offset, each with its first and last byte."""

from verditer.rest.codecs.xml import element, render
from verditer.services.blob.answers import PageRange, PageRanges


def render_page_ranges(page: PageRanges, decoded: object) -> bytes:
    rows = "".join([_range(one) for one in page.ranges])
    marker = element("NextMarker", page.next_marker) if page.next_marker is not None else ""
    return render(f"<PageList>{rows}{marker}</PageList>")


def _range(one: PageRange) -> str:
    name = "ClearRange" if one.cleared else "PageRange"
    return f"<{name}><Start>{one.start}</Start><End>{one.end - 1}</End></{name}>"
