"""Where an S3-compatible store is: bucket, prefix, endpoint and region. Needs none of the libraries of the extra `s3`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

DEFAULT_REGION = "us-east-1"  # what stores other than Amazon's expect when none is configured
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PREFIX = re.compile(r"[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*")


@dataclass(frozen=True, kw_only=True, slots=True)
class S3Location:
    """A bucket and the prefix of all keys. Without an endpoint: Amazon S3 in this region."""

    bucket: str
    prefix: str = ""
    endpoint: str | None = None
    region: str = DEFAULT_REGION
    virtual_host: bool = False  # the bucket is in the host name instead of the path

    @property
    def base_url(self) -> str:
        """The URL of the bucket."""
        scheme, _, host = (self.endpoint or f"https://s3.{self.region}.amazonaws.com").partition("://")
        return f"{scheme}://{self.bucket}.{host}" if self.virtual_host else f"{scheme}://{host}/{self.bucket}"

    def key(self, name: str) -> str:
        return f"{self.prefix}/{name}" if self.prefix else name

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")


def s3_location(url: str, environment: Mapping[str, str]) -> S3Location:
    """`s3://bucket/prefix`, with endpoint and region from the variables that the AWS SDKs know. Raises ValueError."""
    parts = urlsplit(url)
    prefix = parts.path.strip("/")
    if parts.scheme != "s3" or parts.query or parts.fragment or not _BUCKET.fullmatch(parts.netloc):
        raise ValueError(f"{url}: not of the form s3://bucket/prefix")
    if prefix and not _PREFIX.fullmatch(prefix):
        raise ValueError(f"{url}: the prefix consists of letters, digits, '.', '_', '-' and '/'")
    names = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
    endpoint = next((environment[name].rstrip("/") for name in names if environment.get(name)), None)
    if endpoint is not None and urlsplit(endpoint).scheme not in ("http", "https"):
        raise ValueError(f"AWS_ENDPOINT_URL: {endpoint} is not an http or https URL")
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or DEFAULT_REGION
    virtual_host = environment.get("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "").lower() == "true"
    return S3Location(bucket=parts.netloc, prefix=prefix, endpoint=endpoint, region=region, virtual_host=virtual_host)
