"""The text form of NTFS attributes: a list such as `ReadOnly | Archive`, or `None` for a file without any attribute."""

from functools import cache

from verditer.core.files.attributes import FileAttributes, refused_attributes
from verditer.rest.wire_errors import invalid_header

# In the order of their bits, which is the order of the service's answers.
_NAMES = {
    FileAttributes.READ_ONLY: "ReadOnly",
    FileAttributes.HIDDEN: "Hidden",
    FileAttributes.SYSTEM: "System",
    FileAttributes.DIRECTORY: "Directory",
    FileAttributes.ARCHIVE: "Archive",
    FileAttributes.TEMPORARY: "Temporary",
    FileAttributes.OFFLINE: "Offline",
    FileAttributes.NOT_CONTENT_INDEXED: "NotContentIndexed",
    FileAttributes.NO_SCRUB_DATA: "NoScrubData",
}
_BY_NAME = {name.lower(): attribute for attribute, name in _NAMES.items()} | {"none": FileAttributes.NONE}


def parse_attributes(name: str, text: str, *, is_directory: bool) -> FileAttributes:
    """Names in any case and order, with or without blanks. The error names the one that this kind of resource cannot have."""
    attributes, refused = FileAttributes.NONE, refused_attributes(is_directory=is_directory)
    for part in text.split("|"):
        attribute = _BY_NAME.get(part.strip().lower())
        if attribute is None or attribute & refused:
            raise invalid_header(name, part.strip())
        attributes |= attribute
    return attributes


@cache  # of few combinations
def format_attributes(attributes: int) -> str:
    return " | ".join(name for attribute, name in _NAMES.items() if attributes & attribute) or "None"
