"""How frameworks come where a request does not say it, and what is known of a build."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli


@pytest.mark.parametrize("name", ["rhel8", "RHEL 8.10", "Red Hat Enterprise Linux 8.10 (Ootpa)"])
def test_rhel_is_what_images_of_ubi_are_of(real: Cli, name: str) -> None:
    assert "distro ubi8 " in real("resolve", "numpy", "--distro", name).out


def test_a_post_release_is_the_nearest(real: Cli) -> None:
    assert "the nearest: 2.7.3 and 2.7.4.post1" in real("resolve", "flash-attn==2.7.4").err
