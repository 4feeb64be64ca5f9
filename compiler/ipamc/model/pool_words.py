"""How a pool's document says something, by its dialect: what findings tell people to write."""

from __future__ import annotations

from ipamc.model.cidr import BITS
from ipamc.model.cluster import Dialect, Pool

NATIVE = "apiVersion: ipamc/v1alpha1"


def no_new_blocks(pool: Pool) -> str:
    """Return how to keep a pool from giving new blocks; held ones stay."""
    return (
        with_field(pool, "disabled: true") if pool.dialect is Dialect.CLUSTER_CIDR else "set disabled: true"
    )


def with_field(pool: Pool, field: str) -> str:
    """Return how to write a field that only native pools have."""
    if pool.dialect is Dialect.NATIVE:
        return f"set {field}"
    return f"write the pool as a native IPPool ({NATIVE}) with {field}"


def with_block_size(pool: Pool, family: int, size: int) -> str:
    """Return the field that gives blocks of a prefix length."""
    if pool.dialect is Dialect.CLUSTER_CIDR:
        return f"perNodeHostBits: {BITS[family] - size}"
    return f"blockSize: {size}"
