"""Which package brings a library that is missing from an image: one of a vendor or PyPI, or the distribution's."""

from __future__ import annotations

import re

from toolmatrix.logs import signatures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.inventory.model import Inventory

_SONAME = re.compile(r"(?P<stem>.+)\.so\.(?P<major>[\w.]+)|(?P<old>.+)-(?P<number>[\d.]+)\.so")


def bring(inventory: Inventory, soname: str) -> str:
    """What to install for a soname, in the words of the image's package manager as far as that is known.

    The vendors' packages are the table `parts` of matrix/signatures.yaml. Of distributions, rpm and apk find packages
    by soname, and Debian names them after it.
    """
    if soname.startswith("/"):
        return f"a build of it for the C library of this image, or what has {soname}"
    part = signatures.part(signatures.parts(), soname)
    found = [part.brings(soname)] if part is not None else []
    managers = {name.partition(":")[0] for name in inventory.features}
    if "rpm" in managers:
        found.append(f"`dnf install '{soname}()(64bit)'`")
    elif "apk" in managers:
        found.append(f"`apk add so:{soname}`")
    elif "dpkg" in managers and not found and (package := debian_package(soname)):
        found.append(
            f"{package} of the distribution, if it is called so: `apt-file search {soname}`"
        )
    return ", or ".join(found) or f"the package that brings {soname}"


def debian_package(soname: str) -> str:
    """How Debian calls the package of a soname, by its policy, section 8.1; empty for what is no soname."""
    found = _SONAME.fullmatch(soname)
    if found is None:
        return ""
    stem, number = found["stem"] or found["old"], found["major"] or found["number"]
    dash = "-" if found["old"] or stem[-1].isdigit() else ""
    return f"{stem}{dash}{number}".lower().replace("_", "-")
