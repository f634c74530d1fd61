"""What a store keeps of images: with it, whatever became of it, an image is what it is without."""

from __future__ import annotations

import io
import json
import zipfile
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.amount import examples
from tests.images import images
from tests.images.images import hard_link, link, program
from tests.inspection.test_observe import TestLook, dist, elf
from toolmatrix import document_store
from toolmatrix.document_store import DocumentStore
from toolmatrix.errors import SubjectError
from toolmatrix.images import engines, limits, local, streams
from toolmatrix.images.engines import DOCKER, EngineImage
from toolmatrix.images.image import ImageMetadata
from toolmatrix.images.layers import LayerReader
from toolmatrix.images.limits import Budget
from toolmatrix.inspection import layers, running
from toolmatrix.inspection.layers import LayerStore
from toolmatrix.inspection.model import Inventory
from toolmatrix.inspection.observe import observe
from toolmatrix.inspection.running import ProgramProbe

if TYPE_CHECKING:
    import tarfile
    from collections.abc import Mapping

    Files = Mapping[str, bytes | tarfile.TarInfo]


def packed(name: str, data: bytes) -> bytes:
    """A zip archive of one file."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(name, data)
    return stream.getvalue()


HOME = images.special(b"5")
HOME.uid = HOME.gid = 1000
STATUS = b"Package: libc6\nStatus: install ok installed\nVersion: 2.36-9\n\n"
ZOO: dict[str, bytes | tarfile.TarInfo] = {
    "etc/os-release": b"ID=debian\nVERSION_ID=12\n",
    "var/lib/dpkg/status": STATUS,
    "usr/bin/gcc": program("amd64", "12.2.0"),
    "usr/bin/cc": link("gcc"),
    "usr/bin/pip": b"#!/build/venv/bin/python\xff\nimport pip\n",
    "usr/bin/c99": hard_link("usr/bin/gcc"),
    "usr/lib/x": images.special(b"5"),
    "home/app": HOME,
    "opt/a.egg": packed("a/__init__.py", b"__version__ = '1.0'\n"),
    "opt/start": b"#!/bin/sh\n. /opt/venv/bin/activate\n",
    "opt/site-packages/numpy/version.py": b'version = "1.2.3"\n',
    "opt/lib/liba.so": elf(
        soname="liba.so.1",
        needed=["libb.so.2", "libc.so.6"],
        runpath=["$ORIGIN/b"],
        gives=[["A", "1.2"]],
        asks=[["libc.so.6", "GLIBC_2.34"]],
        options=[["-O2", "DW_AT_producer"], ["-fsigned-char", ".GCC.command.line"]],
        char="signed",
        device=["sm_80"],
    ),
    "opt/lib/libb.so": elf("arm64", damaged="no", partial=True, unread=["why"]),
    "opt/site-packages/numpy-1.2.3.dist-info/METADATA": dist("numpy", "1.2.3"),
    "opt/site-packages/numpy-1.2.3.dist-info/RECORD": b"numpy/a\xff.so,,\n",
    "opt/odd-\udcff/.hipVersion": b"HIP_VERSION_MAJOR=5\n\0\xff",
    "etc/.wh.gone": b"",
    "var/lib/rpm/Packages.db": b"RpmP" + bytes(60),
    "opt/deep/.wh..wh..opq": b"",
}
LAYERS = st.lists(
    st.sets(st.sampled_from(sorted(ZOO))).map(lambda names: {name: ZOO[name] for name in names}),
    min_size=1,
    max_size=3,
)


class Held(dict[str, bytes]):
    """Files in memory, which may be damaged."""

    def read(self, name: str) -> bytes | None:
        """What a file holds."""
        return self.get(name)

    def write(self, name: str, data: bytes) -> None:
        """Put a file there."""
        self[name] = data


def stored(held: Held) -> LayerStore:
    """A store of these files."""
    return LayerStore(DocumentStore(held))


def told(data: bytes, store: LayerStore | None, way: str) -> str:
    """The inventory of an archive, or why there is none."""
    reader = LayerReader(TestLook, Budget("image"), store)
    try:
        if way == "pipe":
            found = local.read_archive(io.BytesIO(data), "", reader)
        else:
            with Path(way).open("wb+") as file:
                file.write(data)
                file.seek(0)
                found = local.read_archive(file, "", reader)
    except SubjectError as error:
        return f"{error.what}: {error.found}"
    return json.dumps(observe(*found).to_json())


@settings(max_examples=examples(60), deadline=None)
@given(LAYERS, st.sampled_from(["saved", "layout", "packed"]), st.data())
def test_an_image_is_the_same_with_a_store_that_is_warm_or_damaged_and_without(
    tmp_path_factory: pytest.TempPathFactory,
    several: list[dict[str, bytes | tarfile.TarInfo]],
    form: str,
    data: st.DataObject,
) -> None:
    pack = images.gzipped if form == "packed" else None
    made = images.image(*several, pack=pack)
    whole = images.tar(images.saved(made) if form == "saved" else images.layout(made))
    path = str(tmp_path_factory.getbasetemp() / "image.tar")
    cold = told(whole, None, path)
    held = Held()
    store = stored(held)
    ways = st.sampled_from(["pipe", path])
    assert told(whole, store, data.draw(ways)) == cold
    assert held
    assert told(whole, store, data.draw(ways)) == cold
    name = data.draw(st.sampled_from(sorted(held)))
    cut = data.draw(st.integers(0, len(held[name])))
    held[name] = data.draw(st.sampled_from([b"", held[name][:cut], held[name][:cut] + b"\0" * 9]))
    assert told(whole, store, data.draw(ways)) == cold
    assert told(whole, store, data.draw(ways)) == cold


def test_readings_of_layers_are_shared_by_images_and_forms() -> None:
    held = Held()
    base: Files = {"etc/os-release": ZOO["etc/os-release"], "usr/bin/gcc": ZOO["usr/bin/gcc"]}
    one = images.image(base, {"a": b"1"}, pack=images.gzipped)
    other = images.image(base, {"a": b"2"})
    told(images.tar(images.layout(one)), stored(held), "pipe")
    before = dict(held)
    told(images.tar(images.layout(other)), stored(held), "pipe")
    assert before.items() <= held.items()
    # Two layers with a blob each, and then one layer more.
    assert (len(before), len(held)) == (4, 5)


def test_a_layer_that_is_known_is_not_read_and_still_compared(tmp_path: Path) -> None:
    held = Held()
    made = images.image(ZOO)
    folder = images.put(tmp_path, images.layout(made))

    def fails(*_: object) -> object:
        raise AssertionError("read again")

    for look in (images.everything, fails):
        local.read_layout(str(folder), "", images.reader("layout", look, stored(held)))
    blob = folder / images.blob_path(images.digest(made.layers[0]))
    blob.write_bytes(blob.read_bytes()[:-1] + b"x")
    with pytest.raises(SubjectError):
        local.read_layout(str(folder), "", images.reader("layout", store=stored(held)))


@pytest.mark.parametrize("form", ["saved", "layout"])
def test_an_archive_with_other_bytes_under_a_known_name_is_refused(
    form: str, tmp_path: Path
) -> None:
    held = Held()
    made = images.image({"etc/a": b"1"})
    other = images.image({"etc/a": b"2"})
    lie = made._replace(
        layers=other.layers,
        blobs={**made.blobs, images.digest(made.layers[0]): other.layers[0]},
    )
    write = images.saved if form == "saved" else images.layout
    told(images.tar(write(made)), stored(held), "pipe")
    for way in ("pipe", str(tmp_path / "image.tar")):
        found = told(images.tar(write(lie)), stored(held), way)
        assert found == told(images.tar(write(lie)), None, way)
        assert found.startswith("content does not match its digest")


LARGE: Files = {"opt/large": bytes(streams.BLOCK)}
"""A layer of more than what is compared though it is known."""


@pytest.mark.parametrize("form", ["saved", "layout", "folder"])
def test_a_large_layer_that_is_known_is_not_opened(form: str, tmp_path: Path) -> None:
    held = Held()
    made = images.image(LARGE)
    (layer,) = made.layers
    # Nothing that loads it takes it for the layer, and its digest is not what is looked at.
    other = layer[:-1] + b"x"
    damaged = made._replace(layers=(other,), blobs={**made.blobs, images.digest(layer): other})
    if form == "folder":
        for one in (made, damaged):
            folder = images.put(tmp_path, images.layout(one))
            local.read_layout(str(folder), "", images.reader("layout", store=stored(held)))
        with pytest.raises(SubjectError):
            local.read_layout(str(folder), "", images.reader("layout"))
        return
    write = images.saved if form == "saved" else images.layout
    path = str(tmp_path / "image.tar")
    whole = images.tar(write(made))
    said = told(whole, stored(held), path)
    assert told(images.tar(write(damaged)), stored(held), path) == said
    # What passes is compared, and so is everything without a store.
    for store, way in ((stored(held), "pipe"), (None, path)):
        assert told(images.tar(write(damaged)), store, way) != said


@pytest.mark.parametrize("form", ["saved", "layout", "folder"])
def test_a_known_layer_of_another_size_is_refused(form: str, tmp_path: Path) -> None:
    held = Held()
    made = images.image(LARGE)
    (layer,) = made.layers
    longer = layer + bytes(512)
    damaged = made._replace(layers=(longer,), blobs={**made.blobs, images.digest(layer): longer})
    if form == "folder":
        folder = images.put(tmp_path, images.layout(made))
        local.read_layout(str(folder), "", images.reader("layout", store=stored(held)))
        images.put(tmp_path, images.layout(damaged))
        with pytest.raises(SubjectError, match="the size of its descriptor"):
            local.read_layout(str(folder), "", images.reader("layout", store=stored(held)))
        return
    write = images.saved if form == "saved" else images.layout
    path = str(tmp_path / "image.tar")
    told(images.tar(write(made)), stored(held), path)
    found = told(images.tar(write(damaged)), stored(held), path)
    assert found == told(images.tar(write(damaged)), None, path)
    assert "content does not" in found


def test_other_code_reads_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held()
    whole = images.tar(images.saved(images.image(ZOO)))
    told(whole, stored(held), "pipe")
    count = len(held)
    monkeypatch.setattr(layers, "code", lambda: "of another day")
    told(whole, stored(held), "pipe")
    assert len(held) == 2 * count
    # Without its source nobody can tell which code it is.
    monkeypatch.setattr(layers, "code", lambda: "")
    told(whole, stored(held), "pipe")
    assert len(held) == 2 * count


def test_the_code_is_known_by_all_that_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("images", "inventory"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.py").write_text("1")
    monkeypatch.setattr(layers, "__file__", str(tmp_path / "inventory" / "layers.py"))
    found = {_digest()}
    (tmp_path / "images" / "a.py").write_text("2")
    found.add(_digest())
    monkeypatch.setattr("elftools.__version__", "0")
    found.add(_digest())
    assert len(found) == 3
    monkeypatch.setattr(layers, "__file__", str(tmp_path / "none" / "layers.py"))
    assert _digest() == ""


def _digest() -> str:
    return layers.code.__wrapped__()


def test_too_large_files_are_left_out_with_a_store_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_IN_MEMORY", 2000)
    held = Held()
    whole = images.tar(images.saved(images.image({**ZOO, "var/lib/dpkg/status": STATUS * 40})))
    cold = told(whole, stored(held), "pipe")
    assert "too large together" in cold
    assert told(whole, stored(held), "pipe") == cold


def test_what_an_image_says_of_itself_is_kept() -> None:
    held = Held()
    whole = images.tar(images.layout(images.image(ZOO, {"a": b"1"}, Env=["A=b"], User="me")))
    reader = LayerReader(TestLook, Budget("docker:app"), stored(held))
    image, tree = local.read_archive(io.BytesIO(whole), "", reader)
    assert reader.image("sha256:1") is None
    reader.keep_image("sha256:1", image)
    found = LayerReader(TestLook, Budget("docker:app"), stored(held)).image("sha256:1")
    assert found is not None
    assert found[0] == image
    assert observe(*found).to_json() == observe(image, tree).to_json()
    # Without one of its layers it has to be read.
    name = next(one for one in held if one.startswith("layerreading"))
    del held[name]
    assert LayerReader(TestLook, Budget("docker:app"), stored(held)).image("sha256:1") is None


@pytest.mark.parametrize(
    "change",
    [
        {"entries": None},
        {"entries": [["a"]]},
        {"entries": [["a", "x", 1, 1]]},
        {"entries": [["a", "f", -1, 1]]},
        {"entries": [["a", "f", 1, True]]},
        {"entries": [["a", "f", 1, 1, {"elf": {"dynamic": 1}}]]},
        {"entries": [["a", "f", 1, 1, {"elf": {"no": 1}}]]},
        {"entries": [["a", "f", 1, 1, {"elf": []}]]},
        {"entries": [["a", "f", 1, 1, {"script": {"line": 1}}]]},
        {"entries": [["a", "f", 1, 1, "\u1234"]]},
        {"entries": [["a", "f", 1, 1, 7]]},
        {"entries": [["a", "l", 1]]},
        {"gone": "a"},
        {"count": "1"},
    ],
)
def test_a_reading_of_another_shape_is_not_there(change: dict[str, Any]) -> None:
    held = Held()
    store = stored(held)
    made = images.image(ZOO)
    told(images.tar(images.saved(made)), store, "pipe")
    digest = images.digest(made.layers[0])
    assert store.layer(digest) is not None
    body = {"count": 1, "size": 1, "held": 1, "gone": [], "opaque": [], "entries": [], **change}
    store._put(layers.LAYER, digest, body)
    assert store.layer(digest) is None


@pytest.mark.parametrize("schema", [layers.LAYER, layers.BLOB, layers.IMAGE, layers.ANSWER])
def test_what_is_kept_keeps_to_its_schema(schema: str) -> None:
    held = Held()
    store = stored(held)
    whole = images.tar(images.layout(images.image(ZOO, pack=images.gzipped)))
    reader = LayerReader(TestLook, Budget("image"), store)
    store.keep_image("sha256:1", local.read_archive(io.BytesIO(whole), "", reader)[0])
    store.keep_answer("sha256:1 gcc", "12.2.0", "")
    name = schema.partition(".")[2].partition("/")[0]
    folder = Path(layers.__file__).parent.parent / "schemas"
    shape = json.loads((folder / f"{name}.schema.json").read_text())
    kept = [document_store._unpack(data) for data in held.values()]
    fitting = [body for body in kept if body is not None and body["schema"] == schema]
    assert fitting
    for body in fitting:
        Draft202012Validator(shape).validate(body)


def test_an_answer_is_kept_for_its_program() -> None:
    store = stored(Held())
    assert store.answer("gcc") is None
    store.keep_answer("gcc", "12.2.0", "")
    assert (store.answer("gcc"), store.answer("clang")) == (("12.2.0", ""), None)


def test_metadata_of_another_shape_is_not_there() -> None:
    store = stored(Held())
    store.keep_image("a", ImageMetadata(subject="", config={"a": 1}))
    assert store.image("a") is not None
    store._put(layers.IMAGE, "a", {"digest": "", "indexed": "", "platform": "", "layers": []})
    assert store.image("a") is None


def test_a_program_whose_answer_is_known_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    said = {
        "gcc": ("gcc 12.2.0", ""),
        "bazel": ("", engines.NOT_THERE),
        "slow": ("", "was still running after 30 seconds"),
        "mute": ("none", ""),
    }
    run: list[str] = []

    class Fake:
        """Containers that start nothing."""

        def run(self, programs: list[tuple[str, ...]]) -> list[tuple[str, str]]:
            names = [name for name, *_ in programs]
            run.extend(names)
            return [said[name] for name in names]

    monkeypatch.setattr(engines, "opened_containers", lambda *_: nullcontext(Fake()))
    probes = [ProgramProbe(name=name, run=(name,), about=(name,)) for name in said]
    read = Inventory(subject="docker:app", components=dict.fromkeys(said, ()))
    held = Held()

    def asked(image: str) -> Inventory:
        run.clear()
        made = EngineImage(DOCKER, "docker:app", image, image, {})
        return running.ask_programs(made, read, probes, store=stored(held))

    first = asked("sha256:1")
    assert run == list(said)
    assert asked("sha256:1") == first
    # Why a program was silent may be another thing the next time.
    assert run == ["slow", "mute"]
    assert [one.what for one in first.skipped] == [
        f"running {name}" for name in ("bazel", "slow", "mute")
    ]
    assert asked("sha256:2") == first
    assert run == list(said)
