"""Names of packages elsewhere, of conda and of distributions, that are made of those of components."""

from __future__ import annotations

import re

from toolmatrix.facts.versions import SelectorError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.request.names import Names

# What such names say besides: who packages it, which part of it, and for what.
_BESIDES = {
    *("nvidia", "intel", "amd", "conda", "linux", "64", "lib", "libs", "py", "mutex", "base"),
    *("version", "toolkit", "runtime", "dev", "devel", "headers", "cudart", "training", "mkl"),
}
_ACCELERATORS = {"gpu": "cuda", "cpu": "none"}


def request(names: Names, name: str, selector: str) -> str:
    """What such a name asks for, as words of a request: `pytorch-cuda==12.4` is `torch --with cuda==12.4`.

    Nothing where a part of it is neither a component nor says what is usual besides.
    """
    asked: dict[str, str] = {}
    accelerator = ""
    for piece in filter(None, re.split(r"[-_]", name.lower())):
        numbered = re.fullmatch(r"([a-z]+)(\d+)", piece)
        if piece in _ACCELERATORS:
            accelerator = f" --accelerator {_ACCELERATORS[piece]}"
        elif piece in _BESIDES:
            continue
        elif component := names.called(piece):
            asked.setdefault(component, "")
        elif numbered and (component := names.called(numbered[1])):
            asked[component] = f"=={numbered[2]}"
        else:
            return ""
    version = "==" + selector.lstrip("=") if selector.startswith("=") else selector
    # The version of a package that joins two is that of the one that has such a release.
    plain = (component for component, said in asked.items() if not said)
    of = next((one for one in plain if selector and _has(names, one, version)), "")
    if of:
        asked[of] = version
    first, *held = [component + said for component, said in asked.items()] or [""]
    with_ = "".join(f" --with {one}" for one in held)
    return f"{first}{accelerator}{with_}" if first else ""


def _has(names: Names, component: str, selector: str) -> bool:
    try:
        return bool(names.scale(component).select(selector))
    except SelectorError:
        return False
