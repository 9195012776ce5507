"""Multipart uploads that were begun and never completed: a killed process leaves them, and they occupy space unseen.

obstore can neither list nor abort them, so these two calls of S3 are made here, signed by awscrt. Both are rare.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

import urllib3
from awscrt.auth import (
    AwsCredentials,
    AwsCredentialsProvider,
    AwsSignedBodyHeaderType,
    AwsSigningAlgorithm,
    AwsSigningConfig,
    aws_sign_request,
)
from awscrt.http import HttpHeaders, HttpRequest
from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import ParseError, fromstring

from verditer.stream.extents import ExtentsUnavailable
from verditer.stream.s3_client import CONNECT_SECONDS, Credentials
from verditer.stream.s3_location import S3Location

logger = logging.getLogger("verditer")
MAX_ANSWER_BYTES = 8 << 20  # a page of a thousand uploads is below 1 MiB


class Upload(NamedTuple):
    key: str
    id: str


class MultipartUploads:
    """The uploads of one bucket below a prefix. A store that does not know the calls has none: `supported` is then False."""

    def __init__(self, location: S3Location, credentials: Credentials, deadline_seconds: float) -> None:
        self.supported = True
        self._location = location
        self._credentials = credentials
        timeout = urllib3.Timeout(connect=min(CONNECT_SECONDS, deadline_seconds), total=deadline_seconds)
        self._http = urllib3.PoolManager(timeout=timeout, retries=False, maxsize=2)

    async def list(self, prefix: str) -> AsyncIterator[Upload]:
        marker: dict[str, str] = {}
        while self.supported:
            last = marker
            status, body = await self._call("GET", "", {"uploads": "", "prefix": prefix, **marker})
            if status in (405, 501):
                self.supported = False
                return
            if status == 403:
                logger.warning("interrupted uploads stay in the S3 store: s3:ListBucketMultipartUploads is not permitted")
                return
            if status != 200:
                raise ExtentsUnavailable(f"the S3 store answered {status} when asked for its multipart uploads")
            page = _parsed(body)
            if _name(page) != "ListMultipartUploadsResult":  # it took the call for another one
                self.supported = False
                return
            for upload in _children(page, "Upload"):
                yield Upload(_text(upload, "Key"), _text(upload, "UploadId"))
            if _text(page, "IsTruncated") != "true":
                return
            marker = {"key-marker": _text(page, "NextKeyMarker"), "upload-id-marker": _text(page, "NextUploadIdMarker")}
            if marker == last:
                raise ExtentsUnavailable("the S3 store answered the same page of multipart uploads twice")

    async def abort(self, upload: Upload) -> None:
        """Aborting an upload that is gone does nothing."""
        status, _ = await self._call("DELETE", upload.key, {"uploadId": upload.id})
        if status not in (200, 204, 404):
            raise ExtentsUnavailable(f"the S3 store answered {status} when asked to abort a multipart upload")

    def close(self) -> None:
        self._http.clear()

    async def _call(self, method: str, key: str, query: dict[str, str]) -> tuple[int, bytes]:
        base = urlsplit(self._location.base_url)
        path = f"{base.path}/{quote(key)}" if key else base.path or "/"
        target = f"{path}?{urlencode(sorted(query.items()), quote_via=quote, safe='')}"
        headers = await self._signed(method, target, base.netloc, await self._credentials.get())
        return await asyncio.to_thread(self._send, method, f"{base.scheme}://{base.netloc}{target}", headers)

    async def _signed(self, method: str, target: str, host: str, credentials: AwsCredentials) -> dict[str, str]:
        request = HttpRequest(method, target, HttpHeaders([("Host", host)]))
        config = AwsSigningConfig(
            algorithm=AwsSigningAlgorithm.V4,
            credentials_provider=AwsCredentialsProvider.new_static(
                credentials.access_key_id, credentials.secret_access_key, credentials.session_token
            ),
            region=self._location.region,
            service="s3",
            use_double_uri_encode=False,
            should_normalize_uri_path=False,
            signed_body_header_type=AwsSignedBodyHeaderType.X_AMZ_CONTENT_SHA_256,
        )
        await asyncio.wrap_future(aws_sign_request(request, config))
        return dict(request.headers)

    def _send(self, method: str, url: str, headers: dict[str, str]) -> tuple[int, bytes]:
        try:
            answer = self._http.request(method, url, headers=headers, preload_content=False, redirect=False)
            try:
                return answer.status, answer.read(MAX_ANSWER_BYTES)
            finally:
                answer.release_conn()
        except urllib3.exceptions.HTTPError as error:
            raise ExtentsUnavailable(f"the S3 store failed: {type(error).__name__}") from None


def _parsed(body: bytes) -> Any:
    try:
        return fromstring(body)
    except (ParseError, DefusedXmlException):
        raise ExtentsUnavailable("the S3 store answered no XML when asked for its multipart uploads") from None


def _name(element: Any) -> str:
    name: str = element.tag.rpartition("}")[2]
    return name


def _children(element: Any, name: str) -> list[Any]:
    return [child for child in element if _name(child) == name]


def _text(element: Any, name: str) -> str:
    return next((child.text or "" for child in _children(element, name)), "")
