"""Judges plans of nvcc, hipcc and clang against the matrix: one finding for each thing worth saying, at its stage."""

from __future__ import annotations

from toolmatrix.finding import Finding
from toolmatrix.judge import stage_archs, stage_cover, stage_devices, stage_flags
from toolmatrix.judge.stage_images import codes
from toolmatrix.judge.stage_setting import Setting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolmatrix.facts.index import Index
    from toolmatrix.judge.stage_devices import Verdict
    from toolmatrix.judge.stage_setting import Here
    from toolmatrix.stages.model import Plan

RUNS_NOT, BY_PTX, BY_CODE, CANNOT_SAY = "TM220", "TM221", "TM222", "TM223"

_ANSWERS = {
    stage_devices.NO: (RUNS_NOT, "error"),
    stage_devices.UNKNOWN: (CANNOT_SAY, "warning"),
    stage_devices.PTX: (BY_PTX, "info"),
    stage_devices.CODE: (BY_CODE, "info"),
}


def findings(
    plan: Plan,
    index: Index,
    devices: Sequence[str] = (),
    *,
    path: str = "",
    asked: Sequence[str] | None = None,
    here: Here | None = None,
) -> list[Finding]:
    """What is to be said about one plan; see `all_findings`."""
    return all_findings([plan], index, devices, path=path, asked=asked, here=here)


def all_findings(
    plans: Sequence[Plan],
    index: Index,
    devices: Sequence[str] = (),
    *,
    path: str = "",
    asked: Sequence[str] | None = None,
    here: Here | None = None,
) -> list[Finding]:
    """What is to be said about the plans of a log, in their order, then for each device whether it runs all of them.

    `devices` are devices of the matrix (`8.6`, `gfx90a`, `gfx90a:xnack+`). `path` names the log, for places. `asked`
    are the words of the driver's command line where they are known, `here` is the machine of plans that run here. A
    finding about one plan has its number; one about all has none.
    """
    held: list[Finding] = []
    verdicts: dict[str, list[Verdict]] = {device: [] for device in dict.fromkeys(devices)}
    for number, (plan, code) in enumerate(zip(plans, codes(plans), strict=True)):
        setting = Setting(plan, index, number=number, path=path, asked=asked, here=here)
        held += stage_archs.findings(setting)
        held += stage_cover.findings(setting, code.parts)
        held += stage_flags.findings(setting, code)
        for device, known in verdicts.items():
            verdict = stage_devices.verdict(index, device, code)
            if verdict is not None:
                known.append(verdict)
                held.append(_device(setting, verdict))
    return [*held, *_total(verdicts)]


def _device(setting: Setting, verdict: Verdict) -> Finding:
    """`names`: the device, then the image that it takes, and where PTX is compiled the driver for it; or, where it
    takes none, each image with the word why not.
    """
    code, severity = _ANSWERS[verdict.answer]
    names: tuple[str, ...] = (verdict.image,) if verdict.image else ()
    facts = verdict.facts
    if code == BY_PTX:
        driver, row = stage_devices.driver(setting.index, setting.toolkit.releases)
        names, facts = (verdict.image, driver), (*facts, *([row] if row else ()))
    else:
        names += tuple(word for pair in verdict.why for word in pair if not verdict.image)
    stage = verdict.stage if verdict.plan == setting.number else None
    return setting.finding(
        code,
        severity,
        stage,
        names=(verdict.device, *names),
        expected="relocatable" if verdict.relocatable else "",
        actual=verdict.image or " ".join(image for image, _ in verdict.why),
        facts=facts,
    )


def _total(verdicts: dict[str, list[Verdict]]) -> Iterator[Finding]:
    """For each device the worst of several verdicts, or that there is none.

    `names`: the device, how many plans hold code, and how many of them it runs.
    """
    for device, held in verdicts.items():
        decides = stage_devices.worst(held)
        if len(held) != 1:
            code, severity = _ANSWERS[decides.answer if decides else stage_devices.UNKNOWN]
            runs = sum(one.answer >= stage_devices.PTX for one in held)
            yield Finding(
                code=code,
                severity=severity,
                names=(device, str(len(held)), str(runs)),
                facts=tuple(dict.fromkeys(fact for one in held for fact in one.facts)),
            )
