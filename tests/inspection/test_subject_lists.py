"""Lists of subjects out of files of lines, Kubernetes manifests and compose files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmatrix.errors import ToolmatrixError, UsageError
from toolmatrix.inspection import subjects
from toolmatrix.inspection.subjects import read_subjects

PODS = b"""
apiVersion: apps/v1
kind: Deployment
metadata: {name: server, labels: {image: not-one}}
spec:
  template:
    spec:
      initContainers: [{name: wait, image: busybox}]
      containers:
        - {name: app, image: registry.example/team/app:1.2, env: [{name: image, value: other}]}
        - &side {name: side, image: "localhost:5000/side@sha256:aa"}
---
kind: CronJob
spec: {jobTemplate: {spec: {template: {spec: {containers: [*side]}}}}}
"""
COMPOSE = b"""
services:
  web: {image: "team/web:${TAG:-3}", build: .}
  data: {image: postgres:16}
  own: {build: .}
"""


def read(name: str, data: bytes) -> list[str]:
    return read_subjects(name, lambda: data)


def test_lines_are_subjects_and_a_hash_begins_a_comment_at_their_start() -> None:
    assert read("list", b"# images\n\n docker:a \nlock:L#x86\n") == ["docker:a", "lock:L#x86"]


def test_a_mark_of_the_byte_order_is_no_part_of_the_first_subject() -> None:
    assert read("list", b"\xef\xbb\xbfdocker:a\ndocker:b\n") == ["docker:a", "docker:b"]
    assert read("a.yaml", b"\xef\xbb\xbfcontainers: [{image: x}]\n") == ["registry://docker.io/x"]


def test_a_manifest_names_the_images_of_its_containers() -> None:
    assert read("pods.yaml", PODS.replace(b"*side", b"{name: side, image: a/b}")) == [
        "registry://docker.io/busybox",
        "registry://registry.example/team/app:1.2",
        "registry://localhost:5000/side@sha256:aa",
        "registry://docker.io/a/b",
    ]


def test_a_compose_file_names_the_images_of_its_services() -> None:
    names = ["registry://docker.io/team/web:3", "registry://docker.io/postgres:16"]
    assert read("compose.yml", COMPOSE) == names


@pytest.mark.parametrize("name", ["-", "pods.YAML", "pods.JSON", "list"])
@pytest.mark.parametrize(
    "data",
    [
        b"apiVersion: v1\nkind: Pod\nspec: {containers: [{image: a/b}]}\n",
        b"# of ours\n---\nkind: Pod\nspec:\n  containers:\n  - image: a/b\n",
        b"\xef\xbb\xbfservices:\n  web:\n    image: a/b\n",
        b'{\n    "items": [{"spec": {"containers": [{"image": "a/b"}]}}]\n}\n',
    ],
)
def test_a_manifest_is_known_by_what_it_says_as_well(name: str, data: bytes) -> None:
    assert read(name, data) == ["registry://docker.io/a/b"]


def test_bytes_that_are_no_text_are_told_with_their_line() -> None:
    with pytest.raises(UsageError) as caught:
        read("list", b"docker:a\ndocker:\xff\n")
    assert str(caught.value.where) == "list:2"
    assert caught.value.found == "the byte 0xff, which is not UTF-8"


@pytest.mark.parametrize(
    ("data", "images"),
    [
        ("x-a: &a {image: one}\nservices: {w: {<<: *a, restart: always}}", ["one"]),
        ("x-a: &a {image: one}\nservices: {w: {<<: *a, image: own}}", ["own"]),
        ("x-a: &a {image: one}\nservices: {w: {image: own, <<: *a}}", ["own"]),
        (
            "x-a: &a {image: one}\nx-b: &b {image: two}\nservices: {w: {<<: [{x: 1}, *b, *a]}}",
            ["two"],
        ),
        (
            "x-a: &a {image: one}\nx-b: &b {<<: *a, x: 1}\nservices: {w: {<<: *b}, v: {<<: *b}}",
            ["one"],
        ),
        ("x-s: &s {w: {image: one}}\nservices: {<<: *s, v: {image: two}}", ["two", "one"]),
        ("x-s: &s {w: {image: one}}\nservices: {<<: *s, w: {image: two}}", ["two"]),
        ("x-s: &s {w: {image: one}}\nservices: *s", ["one"]),
        ("x: &x {image: one}\nspec: {containers: [{<<: *x, name: a}]}", ["one"]),
        ("services: {w: &w {<<: *w, image: one}}", ["one"]),
        ("services: {w: {extends: v, image: one}, v: {build: ., extends: {file: a}}}", ["one"]),
        ("? [x]\n: {containers: [{image: one}]}", ["one"]),
        ("apiVersion: v1\ninclude: x\ncontainers: [{image: one}]", ["one"]),
    ],
)
def test_merge_keys_bring_what_is_not_there_itself(data: str, images: list[str]) -> None:
    assert read("a.yaml", data.encode()) == [f"registry://docker.io/{one}" for one in images]


@pytest.mark.parametrize(
    ("data", "place", "found"),
    [
        ("services:\n  w: {extends: v}", (2, 7), "`extends`"),
        ("services:\n  w:\n    extends: {file: a.yaml, service: v}", (3, 5), "`extends`"),
        ("x-a: &a {extends: v}\nservices: {w: {<<: *a}}", (1, 10), "`extends`"),
        ("include: [a.yaml]\nservices: {w: {image: a}}", (1, 1), "`include`"),
        ("include:\n- path: a.yaml", (1, 1), "`include`"),
        ("containers:\n- image: {{ .Values.image }}", (2, 10), "a mapping"),
        ("services: {w: {image: {{ .Values.image }}}}", (1, 23), "a mapping"),
        ("containers:\n- name: a\n  image:", (3, 9), "nothing"),
        ("containers:\n- image: null", (2, 10), "`null`"),
        ("containers:\n- image: ''", (2, 10), "nothing"),
        ("containers:\n- image: [a]", (2, 10), "a list"),
        ("services:\n  w: {image: 5}", (2, 14), "`5`"),
    ],
)
def test_an_image_that_cannot_be_told_is_refused(
    data: str, place: tuple[int, int], found: str
) -> None:
    with pytest.raises(UsageError) as caught:
        read("a.yaml", data.encode())
    assert caught.value.where is not None
    assert (caught.value.where.line, caught.value.where.column) == place
    assert caught.value.found == found
    assert "`docker compose config` and `helm template`" in str(caught.value.help)


@pytest.mark.parametrize(
    ("data", "what", "line"),
    [
        (COMPOSE.replace(b":-3", b""), "the name of an image has a variable without a value", 3),
        (b"containers:\n- image: '{{ .Values.image }}'\n", "the name of an image has a var", 2),
        (b"a: [\n", "the list of subjects is not YAML", 2),
        (PODS.replace(b"*side", b"*none"), "the list of subjects is not YAML", 14),
        (b"\xff\xfe\x00", "the list of subjects is not YAML", 0),
    ],
)
def test_what_cannot_be_read_is_told_with_its_place(data: bytes, what: str, line: int) -> None:
    with pytest.raises(UsageError) as caught:
        read("compose.yaml", data)
    assert caught.value.what.startswith(what)
    assert caught.value.where is not None
    assert (caught.value.where.path, caught.value.where.line) == ("compose.yaml", line)


def test_aliases_of_aliases_cost_what_they_take_to_write() -> None:
    levels = "".join(
        f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]\n" for level in range(1, 40)
    )
    assert read("bomb.yaml", f"a0: &a0 x\n{levels}".encode()) == []
    assert read("key.yaml", f"a0: &a0 x\n{levels}? *a39\n: x\n".encode()) == []
    merges = levels.replace("[", "{<<: [").replace("]", "]}")
    assert read("merges.yaml", f"a0: &a0 {{x: y}}\n{merges}".encode()) == []
    assert read("circle.yaml", b"&a containers: [*a, {image: x}]\n") == ["registry://docker.io/x"]


def test_merged_keys_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subjects, "_MOST_MERGED", 10)
    with pytest.raises(UsageError, match="merges too much"):
        read("a.yaml", b"a: &a {b: 1, c: 1, d: 1}\ne: [{<<: *a}, {<<: *a}, {<<: *a}]\n")


@given(st.binary(max_size=80) | st.text("{}[]:-,&*<ab$\n imagecontainers", max_size=80))
def test_nothing_but_an_error_of_ours_comes_of_any_file(data: bytes | str) -> None:
    try:
        found = read("a.yaml", data if isinstance(data, bytes) else data.encode())
    except ToolmatrixError:
        return
    assert all(one.startswith("registry://") for one in found)
