"""Tags on the wire: the Tags document of Get and Set Blob Tags, and the page of Find Blobs by Tags."""

from xml.etree.ElementTree import Element

from verditer.core.errors import Code, StorageError
from verditer.core.tags import validate
from verditer.rest.codecs.listings import service_endpoint
from verditer.rest.codecs.xml import element, escape, parse, render
from verditer.rest.stages import Decoded
from verditer.rest.wire_errors import missing_node
from verditer.services.blob.tags import FoundPage, TaggedBlob


def parse_tags(document: bytes) -> dict[str, object]:
    root = parse(document, "Tags")
    tag_set = root.find("TagSet")
    if tag_set is None or any(child.tag != "Tag" for child in tag_set):
        raise StorageError(Code.InvalidXmlDocument)
    pairs = [(_text(tag, "Key"), _text(tag, "Value")) for tag in tag_set]
    return {"tags": validate(pairs), "document": document}


def _text(tag: Element, name: str) -> str:
    """Blanks are part of a tag."""
    child = tag.find(name)
    if child is None:
        raise missing_node(name)
    return child.text or ""


def render_tags(tags: dict[str, str], decoded: object) -> bytes:
    return render(f"<Tags>{tag_set(tags)}</Tags>")


def tag_set(tags: dict[str, str]) -> str:
    rows = "".join([f"<Tag>{element('Key', key)}{element('Value', value)}</Tag>" for key, value in tags.items()])
    return f"<TagSet>{rows}</TagSet>" if rows else "<TagSet />"


def render_found(page: FoundPage, decoded: Decoded) -> bytes:
    rows = "".join([_found(found) for found in page.blobs])
    return render(
        f'<EnumerationResults ServiceEndpoint="{escape(service_endpoint(decoded))}">{element("Where", page.where)}'
        f"<Blobs>{rows}</Blobs>{element('NextMarker', page.next_marker)}</EnumerationResults>"
    )


def _found(found: TaggedBlob) -> str:
    name, container = element("Name", found.blob), element("ContainerName", found.container)
    return f"<Blob>{name}{container}<Tags>{tag_set(found.tags)}</Tags></Blob>"
