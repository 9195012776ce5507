"""Tests of the image, with Debian's buildah on a base that debootstrap makes. `make containers` runs them, as root."""
