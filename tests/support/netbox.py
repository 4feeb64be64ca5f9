"""A model of NetBox's list of prefixes and of its bulk import, from what its source does; NetBox itself is not run.

Read at v3.4.0, v3.7.8, v4.1.0, v4.2.0 and v4.6.8: `ipam/forms/bulk_import.py` (the fields of a prefix),
`utilities/forms/bulk_import.py` and `utilities/forms/utils.py` (how CSV is read), `netbox/views/generic/
bulk_views.py` (an `id` updates, all or nothing), `ipam/models/ip.py` (unique prefixes, no /0, host bits cleared),
`netbox/models/__init__.py` (200 characters of description), `ipam/tables/` (the columns of an export).
"""

from __future__ import annotations

import csv
import io
from ipaddress import ip_network
from typing import NamedTuple

STATUSES = ("container", "active", "reserved", "deprecated")
_COMMON = (
    "prefix",
    "vrf",
    "tenant",
    "vlan_group",
    "vlan",
    "status",
    "role",
    "is_pool",
    "mark_utilized",
    "description",
)
FIELDS = {
    "3.4": (*_COMMON, "site", "comments", "tags"),
    "4.1": (*_COMMON, "site", "comments", "tags"),
    "4.2": (*_COMMON, "scope_type", "scope_id", "comments", "tags"),
    "4.6": (*_COMMON, "vlan_site", "scope_type", "scope_id", "owner", "comments", "tags"),
}
"""The columns that an import takes beside `id`, by version."""


class Refused(Exception):  # noqa: N818 - NetBox's verdict
    """NetBox imports nothing."""


class Seen(NamedTuple):
    """A prefix in NetBox."""

    id: int
    prefix: str
    vrf: str
    status: str
    role: str
    description: str


class NetBox:
    """The prefixes of one NetBox."""

    def __init__(self, version: str = "4.6", *, unique: bool = True) -> None:
        self.version = version
        self.unique = unique
        self.vrfs = {"": "Global", "pods": "pods (65000:1)"}
        self.prefixes: dict[int, dict[str, str]] = {}

    def bulk_import(self, text: str) -> None:
        """Import a file as a person does who leaves format and delimiter on auto."""
        headers, *rows = self._read(text)
        if len(set(headers)) < len(headers):
            raise Refused("duplicate header")
        if unknown := set(headers) - {"id", *FIELDS[self.version]}:
            raise Refused(f"unexpected headers {unknown}")
        after = {number: dict(fields) for number, fields in self.prefixes.items()}
        touched: set[int] = set()
        for row in rows:
            if len(row) != len(headers):
                raise Refused(f"{len(row)} columns")
            record = dict(zip(headers, (cell.strip() for cell in row), strict=True))
            number = int(record.pop("id", "") or 0)
            if number and (number not in after or number in touched):
                raise Refused(f"no prefix {number}, or twice")
            if not number and not {"prefix", "status"} <= record.keys():
                raise Refused("a new prefix has no prefix or status")
            number = number or max(after, default=0) + 1
            touched.add(number)
            after[number] = {**after.get(number, {}), **self._checked(record)}
            self._refuse_duplicate(number, after)
        self.prefixes = after

    def _read(self, text: str) -> list[list[str]]:
        text = text.strip()
        if self.version < "3.7":
            return list(csv.reader(io.StringIO(text)))
        try:
            dialect: type[csv.Dialect] = csv.Sniffer().sniff(text, delimiters=",;|\t")
        except csv.Error:
            dialect = csv.excel
        return list(csv.reader(io.StringIO(text), dialect=dialect))

    def _checked(self, record: dict[str, str]) -> dict[str, str]:
        if "prefix" in record:
            network = ip_network(record["prefix"], strict=False)
            if network.prefixlen == 0:
                raise Refused("a mask of /0")
            record["prefix"] = str(network)
        if record.get("status", "active") not in STATUSES:
            raise Refused(f"no status {record['status']}")
        if record.get("vrf", "") not in self.vrfs:
            raise Refused(f"no VRF {record['vrf']}")
        if len(record.get("description", "")) > 200:
            raise Refused("a description of more than 200 characters")
        return record

    def _refuse_duplicate(self, number: int, after: dict[int, dict[str, str]]) -> None:
        mine = after[number]["prefix"], after[number].get("vrf", "")
        same = [each for each, fields in after.items() if (fields["prefix"], fields.get("vrf", "")) == mine]
        if self.unique and len(same) > 1:
            raise Refused(f"duplicate prefix {mine}")

    def seen(self) -> list[Seen]:
        """Return the prefixes in the order of NetBox's list."""
        found = [
            Seen(
                number,
                fields["prefix"],
                fields.get("vrf", ""),
                fields["status"],
                fields.get("role", ""),
                fields.get("description", ""),
            )
            for number, fields in self.prefixes.items()
        ]
        return sorted(found, key=lambda each: (each.vrf, _order(each.prefix), each.id))

    def export(self, delimiter: str = ",") -> str:
        """Return what `Export > All Data (CSV)` gives: names of columns and values as a person reads them."""
        text = io.StringIO()
        writer = csv.writer(text, delimiter=delimiter)
        writer.writerow(["Prefix", "Status", "Children", "VRF", "Role", "Description", "Prefix (Flat)", "ID"])
        for each in self.seen():
            writer.writerow(
                [
                    each.prefix,
                    each.status.title(),
                    "0",
                    self.vrfs[each.vrf],
                    each.role,
                    each.description,
                    each.prefix,
                    each.id,
                ]
            )
        return text.getvalue()


def _order(prefix: str) -> tuple[int, int, int]:
    network = ip_network(prefix)
    return network.version, int(network.network_address), network.prefixlen
