"""Jobs of Kubernetes: the check of an image on a node that it can run on, as a pattern for what runs there.

The node has the platform, a GPU of the answer where it names any, and a driver that is not older than its floor. Labels
are those of NVIDIA's GPU feature discovery (`outside.yaml`); `Gt` and `Lt` compare them as integers (Kubernetes, API
reference, NodeSelectorRequirement).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from toolmatrix.rendering import common, dockerfile, mirrors, quote
from toolmatrix.rendering.mirrors import Devices
from toolmatrix.rendering.model import ImagePlan, Job

Expressions = list[dict[str, object]]

SUMMARY = "a Kubernetes job for each image, on a node with its platform, GPU and driver"

# The user that the Dockerfiles make.
_USER = 10001
# What NVIDIA calls the numbers of a driver, such as 525.60.13, and of a device, such as 8.6.
_DRIVER, _DEVICE = ("major", "minor", "revision"), ("major", "minor")


def files(job: Job) -> dict[str, str]:
    """`NAME.kubernetes.yaml` for each image; raises RenderError for a name that is no plain word."""
    return {
        common.file_name(image, ".kubernetes.yaml"): common.as_yaml(
            (*common.lines(job), "", *_about(image)), _job(job, image)
        )
        for image in job.images
    }


def _about(image: ImagePlan) -> Iterator[str]:
    yield "The image is the one of the bake file; add a registry with `images` of kustomize."
    devices = mirrors.devices(image.locked.accelerator)
    if devices and not devices.driver:
        yield "No label has the release of the driver. The group IDs of /dev/kfd and /dev/dri depend on the node:"
        yield "list them in supplementalGroups."


def _job(job: Job, image: ImagePlan) -> dict[str, object]:
    name = common.label(image)
    labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/managed-by": "toolmatrix"}
    annotations = {"io.github.toolmatrix.lock.digest": str(quote.plain("digest", job.digest))}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels, "annotations": annotations},
        "spec": {
            "backoffLimit": 0,
            "template": {"metadata": {"labels": labels}, "spec": _pod(job, image)},
        },
    }


def _pod(job: Job, image: ImagePlan) -> dict[str, object]:
    devices = mirrors.devices(image.locked.accelerator)
    terms = list(_terms(image, devices)) if devices else []
    system, _, machine = str(quote.plain("path", image.locked.platform)).partition("/")
    wanted = {"nodeSelectorTerms": [{"matchExpressions": expressions} for expressions in terms]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": wanted}}
    resources = {"resources": {"limits": {devices.resource: 1}}} if devices else {}
    return {
        "restartPolicy": "Never",
        # The platform of an image is called as Go calls it, and so is that of a node.
        "nodeSelector": {"kubernetes.io/os": system, "kubernetes.io/arch": machine},
        **({"affinity": affinity} if terms else {}),
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": "check",
                "image": common.tag(image, job),
                "command": [
                    *("sh", f"{dockerfile.FOLDER}/{dockerfile.check_name(image)}"),
                    *(("runtime",) if image.artifacts else ()),
                ],
                **resources,
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"]},
                },
            }
        ],
    }


def _terms(image: ImagePlan, devices: Devices) -> Iterator[Expressions]:
    """Ways in which a node may fit, each with all that has to hold."""
    driver = image.locked.components.get("driver")
    floors: list[Expressions] = [[]]
    if devices.driver and driver:
        floors = list(_floor(devices.driver, _numbers(driver.version)))
    named = [_numbers(device) for device in image.locked.devices if devices.device]
    wanted = [_exactly(devices.device, _DEVICE, numbers) for numbers in named] or [[]]
    for device, floor in product(wanted, floors):
        if device or floor:
            yield [*device, *floor]


def _numbers(release: str) -> list[int]:
    # What is no number is refused as a release where the lock is looked at.
    return [int(number) for number in quote.plain("numbers", release).split(".")]


def _floor(label: str, floor: list[int]) -> Iterator[Expressions]:
    for index, number in enumerate(floor[: len(_DRIVER)]):
        last = index + 1 == min(len(floor), len(_DRIVER))
        above = _expression(label, _DRIVER[index], "Gt", number - 1 if last else number)
        yield [*_exactly(label, _DRIVER, floor[:index]), above]


def _exactly(label: str, names: tuple[str, ...], numbers: list[int]) -> Expressions:
    # A driver has zeros in front, as 06 of 455.06, so that labels are compared as numbers.
    return [
        _expression(label, name, operator, number + by)
        for name, number in zip(names, numbers, strict=False)
        for operator, by in (("Gt", -1), ("Lt", 1))
    ]


def _expression(label: str, name: str, operator: str, number: int) -> dict[str, object]:
    return {"key": f"{label}.{name}", "operator": operator, "values": [str(number)]}
