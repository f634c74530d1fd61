"""Looks at Python packages: `python wheels.py ACCELERATOR DRIVER (PACKAGE RELEASE BUILD PROGRAM DEVICE ARCHS)...`.

Prints a line of the check's table for each thing it looked at, tabs between its parts: yes, no, or untried; what it is
about, what was found, what was wanted, and how. It runs as the Python of the image, which may be 3.6.
"""

import csv
import os
import re
import struct
import subprocess
import sys
import sysconfig

YES, NO, UNTRIED = "yes", "no", "untried"
DEVICES = {"cuda": "/dev/nvidia0", "rocm": "/dev/kfd"}
PACKAGED = {
    # The bindings of NVML are Python alone, and look whether there is a GPU.
    "cuda": re.compile(r"(?!nvidia-ml-py$)(nvidia|cuda)-|.*-cu(da)?\d+"),
    "rocm": re.compile(r"(rocm|hip)\b|.*[-+]rocm"),
}
"""By accelerator: the names of distributions that belong to it."""
LOCAL = {"cuda": re.compile(r".*\+cu\d"), "rocm": re.compile(r".*\+rocm")}
"""By accelerator: the versions that say so, as PyTorch's do."""
DRIVER = re.compile(r"lib(cuda|nvidia-ml)\.so")
FATBIN = struct.pack("<I", 0xBA55ED50)
"""What code for devices begins with in a file; behind it come the version, its length and that of the images."""
IMAGE = struct.Struct("<HHIQIIHHIIIQ")
"""Of each image its kind, version, lengths of header and image, four more, arch, two more, flags."""
KINDS = {1: "compute_", 2: "sm_"}
REQUIRED = re.compile(r"Requires-Dist: *([\w.-]*\w)(?!.*\bextra\b)")


def tell(state, name, found, wanted, how):
    """Print a line; no part is empty, and none has a line break or a tab."""
    parts = (state, name, found, wanted, how)
    print("\t".join(" ".join(part.split()) or "nothing" for part in parts))


def plain(name):
    """The name of a distribution as an index has it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def distributions():
    """By name: the version, the checksum of each file by its path, {} where none are listed, and what it requires."""
    found = {}
    paths = sysconfig.get_paths()
    for folder in {os.path.realpath(paths[key]) for key in ("purelib", "platlib")}:
        for entry in sorted(os.listdir(folder)):
            stem, ending = os.path.splitext(entry)
            if ending in (".dist-info", ".egg-info"):
                name, _, version = stem.partition("-")
                files = listed(os.path.join(folder, entry, "RECORD"))
                needs = required(os.path.join(folder, entry, "METADATA"))
                found[plain(name)] = (version.split("-")[0], files, needs)
    return found


def required(path):
    """What a distribution requires without any of its extras."""
    if not os.path.exists(path):
        return set()
    with open(path, encoding="utf-8") as file:
        return {plain(found.group(1)) for found in map(REQUIRED.match, file) if found}


def listed(path):
    """The files of a distribution with their checksums."""
    if not os.path.exists(path):
        return {}
    with open(path, newline="", encoding="utf-8") as file:
        return {row[0]: row[1] for row in csv.reader(file) if len(row) > 1}


def modules(name, files):
    """The modules to import of a distribution: those called as it is, else all that begin none of the others."""
    tops = set()
    for path in files:
        parts = path.split("/")
        if parts[-1] == "__init__.py" and len(parts) > 1:
            tops.add(".".join(parts[:-1]))
        elif len(parts) == 1 and parts[0].endswith((".py", ".so")):
            tops.add(parts[0].split(".")[0])
    first = sorted(
        one
        for one in tops
        if re.match(r"[A-Za-z]\w*(\.\w+)*$", one)
        and not any(one.startswith(other + ".") for other in tops)
    )
    words = name.replace("-", "_")
    leaves = [(one, one.rpartition(".")[2].lower()) for one in first]
    return (
        [one for one, leaf in leaves if leaf == words]
        or [one for one, leaf in leaves if words.startswith(leaf) or words.endswith(leaf)]
        or first
    )


def run(program):
    """What came of a program in a process of its own: whether it ended well, and its last line."""
    done = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
    )
    said, failed = done.communicate()
    text = said if done.returncode == 0 else failed
    lines = [line for line in text.splitlines() if line.strip()]
    return done.returncode == 0, lines[-1] if lines else f"exit code {done.returncode}"


def tried(name, wanted, how, program, device):
    """Judge a package by a program, unless what it lacks is the driver of a host that has no device."""
    well, said = run(program)
    if not well and DRIVER.search(said) and device and not os.path.exists(device):
        tell(UNTRIED, name, said, wanted, how)
    else:
        tell(YES if well else NO, name, wanted if well else said, wanted, how)
    return well


def held(path):
    """The archs for which a file has code, by the headers of its fat binaries."""
    with open(path, "rb") as file:
        data = file.read()
    found = set()
    start = data.find(FATBIN)
    while start >= 0:
        place = start + struct.unpack_from("<H", data, start + 6)[0]
        end = min(place + struct.unpack_from("<Q", data, start + 8)[0], len(data))
        while place + IMAGE.size <= end:
            kind, _, header, length, _, _, _, _, arch, _, _, flags = IMAGE.unpack_from(data, place)
            if header < IMAGE.size:
                break
            if kind in KINDS:
                specific = "a" * (flags >> 20 & 1) + "f" * (flags >> 21 & 1)
                found.add(KINDS[kind] + str(arch) + specific)
            place += header + length
        start = data.find(FATBIN, start + 1)
    return found


def archs(name, wanted, files):
    """Judge a package by the archs of its code: each file that has some has it for all that are wanted."""
    folder = sysconfig.get_paths()["platlib"]
    for path in sorted(files):
        if re.search(r"\.so[.0-9]*$", path):
            has = held(os.path.join(folder, path))
            if has:
                enough = has.issuperset(wanted.split(","))
                tell(YES if enough else NO, name, ",".join(sorted(has)), wanted, path)
                files = ()
    if files:
        tell(NO, name, "no code", wanted, "its RECORD")


def package(name, release, program, known, device):
    """Judge one package: its release, its import, and what it computes."""
    version, files, _ = known.get(plain(name), ("nothing", {}, set()))
    same = plain(name) in known and release in ("", version, version.split("+")[0])
    tell(YES if same else NO, name, version, release or "any release", "its METADATA")
    names = modules(plain(name), files)
    if not same:
        return
    if not names:
        tell(UNTRIED, name, "no module", "a module", "its RECORD")
        return
    text = "import " + ", ".join(names)
    if tried(name, "imported", text, text, device) and program:
        tried(name, "computed", "an operation on the CPU", program, device)


def owners(asked, known):
    """The folders of packages into which others put other files, each with those that do."""
    found = []
    for name in asked:
        own = known.get(name, ("", {}, set()))[1]
        tops = {path.split("/")[0] for path in own if path.endswith("/__init__.py")}
        for other, (_, files, _) in sorted(known.items()):
            both = (path for path in own if path in files and path.split("/")[0] in tops)
            if other != name and any(own[path] != files[path] for path in both):
                found.append(" and ".join(sorted((name, other))))
    return sorted(set(found))


def foreign(accelerator, asked, known):
    """The distributions of another accelerator than the one of the image, beside those that were asked for.

    `asked` has the build of each that was chosen by its accelerator; what others require comes with every build.
    """
    own = set(asked)
    for name in (name for name, build in asked.items() if not build):
        own |= known.get(name, ("", {}, set()))[2]
    return [
        f"{name} {version}"
        for name, (version, _, _) in sorted(known.items())
        for of in ("cuda", "rocm")
        if of != accelerator
        and (LOCAL[of].match(version) or (name not in own and PACKAGED[of].match(name)))
    ]


def driver(floor):
    """Judge the driver of the host by the floor of the toolkit."""
    wanted = ">=" + floor
    try:
        query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        said = subprocess.check_output(query, stderr=subprocess.DEVNULL).decode().split()
    except (OSError, subprocess.CalledProcessError):
        said = []
    if not said:
        tell(UNTRIED, "driver", "no driver here", wanted, "nvidia-smi")
        return
    numbers = [[int(part) for part in re.findall(r"\d+", text)] for text in (said[0], floor)]
    tell(YES if numbers[0] >= numbers[1] else NO, "driver", said[0], wanted, "nvidia-smi")


def on_device(asked, accelerator):
    """Judge what packages compute on the device."""
    device = DEVICES[accelerator]
    if not os.path.exists(device):
        tell(UNTRIED, "device", "no " + device, "a device", "ls " + device)
        return
    for name, program in asked:
        well, said = run(program)
        # What it prints is the name of the device.
        how, found = (said, "computed") if well else (device, said)
        tell(YES if well else NO, name, found, "computed", "an operation on " + how)


def main(accelerator, floor, *words):
    """Look at everything."""
    packages = [words[place : place + 6] for place in range(0, len(words), 6)]
    known, device = distributions(), DEVICES.get(accelerator, "")
    for name, release, _, program, _, wanted in packages:
        package(name, release, program, known, device)
        if wanted:
            archs(name, wanted, known.get(plain(name), ("", {}))[1])
    alone = [name for name, _, _, program, _, _ in packages if not program]
    if alone:
        tell(UNTRIED, "operation", "none is known", "an operation", ", ".join(alone))
    asked = {plain(name): build for name, _, build, _, _, _ in packages}
    wrong = foreign(accelerator, asked, known)
    how = f"{len(known)} distribution{'s' * (len(known) != 1)}"
    tell(NO if wrong else YES, "foreign", ", ".join(wrong) or "none", "none", how)
    shared, wanted = owners(asked, known), "one owner each"
    tell(NO if shared else YES, "folders", ", ".join(shared) or wanted, wanted, how)
    unlisted = [name for name, (_, files, _) in sorted(known.items()) if not files]
    if unlisted:
        tell(UNTRIED, "folders", "no RECORD", "a RECORD", ", ".join(unlisted))
    if floor:
        driver(floor)
    if device:
        programs = [(name, program) for name, _, _, _, program, _ in packages if program]
        on_device(programs, accelerator)


if __name__ == "__main__":
    main(*sys.argv[1:])
