"""Prints the bill of materials of a wheel as CycloneDX: the packages that it requires, and those that it carries."""

from __future__ import annotations

import json
import re
import sys
from email import message_from_bytes
from email.message import Message
from typing import Any
from zipfile import ZipFile

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

_VENDORED = re.compile(r"toolmatrix/data/explorer/vendor/(\w+)\.LICENSE")
_NPM = "toolmatrix/data/explorer/package.json"


def bill(metadata: Message, vendored: dict[str, str]) -> dict[str, Any]:
    """The document for the METADATA of a wheel, and the npm packages of which it holds files, with their versions."""
    name, version = metadata["Name"], metadata["Version"]
    own = f"pkg:pypi/{canonicalize_name(name)}@{version}"
    wanted = [Requirement(line) for line in metadata.get_all("Requires-Dist", [])]
    # A wheel fixes no versions of what it requires: whoever installs it gets the newest in the range.
    components = [_required(one) for one in wanted if "extra" not in str(one.marker)]
    components += [
        _component(npm, f"pkg:npm/{npm}@{held}") | {"version": held}
        for npm, held in sorted(vendored.items())
    ]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.7.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.7",
        "version": 1,
        "metadata": {
            "component": _component(name, own)
            | {
                "type": "application",
                "version": version,
                "licenses": [{"expression": metadata["License-Expression"]}],
            }
        },
        "components": components,
        "dependencies": [{"ref": own, "dependsOn": [one["bom-ref"] for one in components]}],
    }


def _required(requirement: Requirement) -> dict[str, Any]:
    bounds = sorted(requirement.specifier, key=lambda one: "<" in one.operator)
    body = _component(requirement.name, f"pkg:pypi/{canonicalize_name(requirement.name)}")
    body["isExternal"] = True
    if bounds:
        body["versionRange"] = "vers:pypi/" + "|".join(map(str, bounds))
    if requirement.marker:
        body["scope"] = "optional"
        body["properties"] = [{"name": "marker", "value": str(requirement.marker)}]
    return body


def _component(name: str, purl: str) -> dict[str, Any]:
    return {"type": "library", "name": name, "bom-ref": purl, "purl": purl}


def main(path: str) -> None:
    """Print the bill of the wheel at a path."""
    with ZipFile(path) as wheel:
        names = wheel.namelist()
        (place,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        versions = json.loads(wheel.read(_NPM))["dependencies"]
        held = [match[1] for match in map(_VENDORED.fullmatch, names) if match]
        document = bill(
            message_from_bytes(wheel.read(place)), {name: versions[name] for name in held}
        )
    sys.stdout.write(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
