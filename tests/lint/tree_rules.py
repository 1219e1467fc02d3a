#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rules of the tree that a compiler does not check (doc/architecture.md): include arrows, where foreign headers may
appear, file lengths, what libraries must not do, numbers that are read in part, calls of the file system that throw,
scripts that compute, and the status of each decision.  Prints FILE:LINE: PROBLEM and exits 1 if there is any.

usage: tree_rules.py ROOT
"""

import pathlib
import re
import sys

SOURCES = ("support", "rankfile", "scaling", "launcher", "trainer", "ddldata", "ddlctl", "manual", "bench", "tests")
MAX_LINES = 600
# Longer files, each with its reason.
LONG_FILES: dict[str, str] = {}

SUFFIXES = (".h", ".cc", ".cu", ".cuh")

# Std-only helpers that every directory may use; they include nothing of ours.
SHARED = "support/"

# What all rooms of trainer/train may include.
BELOW_TRAIN = ("trainer/core", "trainer/backend", "trainer/model", "trainer/data", "trainer/checkpoint", "trainer/comm",
               "trainer/telemetry", "trainer/control")

# directory -> directories and headers of ours that its files may include (itself always).  The longest matching prefix counts.
# The arrows make no circle.
ARROWS = {
    "support": [],
    "rankfile": [],
    "scaling": [],
    "launcher/base": [],
    "launcher/system": ["launcher/base"],
    "launcher/cost": [],
    "launcher/cli": ["scaling/machine.h", "launcher/base", "launcher/system", "launcher/protocol/launchers.h", "launcher/protocol/rank_list.h",
                     "launcher/protocol/rank_variables.h"],
    "launcher/allocation": ["rankfile", "launcher/base/error.h"],
    "launcher/topology": ["launcher/base/error.h"],
    "launcher/placement": ["rankfile", "launcher/base/error.h", "launcher/base/messages.h", "launcher/allocation",
                      "launcher/topology"],
    "launcher/protocol": ["rankfile", "launcher/base", "launcher/topology/fingerprint.h", "launcher/topology/gpus_of_node.h",
                          "launcher/placement/launch_plan.h", "launcher/cost/run_cost.h"],
    "launcher/rank": ["rankfile", "launcher/base", "launcher/topology", "launcher/placement", "launcher/protocol"],
    "launcher/shim": ["launcher/topology/fingerprint.h", "launcher/topology/gpus_of_node.h", "launcher/protocol/local_rank_job.h",
                      "launcher/protocol/attachment.h", "launcher/protocol/launchers.h", "launcher/protocol/rank_event.h",
                      "launcher/protocol/rank_variables.h"],
    "launcher/slurm": ["rankfile", "launcher/base", "launcher/system", "launcher/allocation", "launcher/protocol/rank_exit.h"],
    "launcher/launch": ["rankfile", "launcher/base", "launcher/system", "launcher/placement/launch_plan.h", "launcher/protocol",
                       "launcher/slurm"],
    "launcher/pipeline": ["rankfile", "launcher/base", "launcher/system", "launcher/cli", "launcher/allocation",
                          "launcher/topology", "launcher/placement", "launcher/protocol", "launcher/slurm", "launcher/launch"],
    "launcher/supervise": ["rankfile", "launcher/base", "launcher/system", "launcher/allocation/host_index.h",
                           "launcher/protocol", "launcher/shim/leftovers.h", "launcher/shim/rank_log.h",
                           "launcher/slurm/srun_lines.h",
                           "launcher/launch/mpirun_lines.h", "launcher/launch/launcher.h"],
    "launcher/features": ["launcher/base", "launcher/cost", "launcher/system", "launcher/cli", "launcher/protocol", "launcher/slurm",
                          "launcher/shim/stopped_rank_monitor.h", "launcher/pipeline", "launcher/supervise"],
    "launcher/diagnose": ["launcher/base", "launcher/system", "launcher/protocol/job_status.h", "launcher/protocol/rank_variables.h"],
    "launcher/restart": ["launcher/base", "launcher/system", "launcher/cli", "launcher/allocation/host_index.h",
                         "launcher/slurm", "launcher/launch/child_environment.h", "launcher/supervise"],
    "launcher/health": ["rankfile", "launcher/base", "launcher/system", "launcher/cli", "launcher/placement", "launcher/protocol",
                        "launcher/launch/launcher.h", "launcher/pipeline", "launcher/supervise"],
    "launcher/health/node": ["launcher/protocol/launchers.h", "launcher/base", "launcher/system", "launcher/allocation/visible_gpus.h",
                             "launcher/shim/energy_meter.h", "launcher/topology/driver_gpus.h", "launcher/health/node_info.h",
                             "launcher/health/pair_schedule.h"],
    "launcher/bede": ["rankfile", "launcher/base", "launcher/system", "launcher/cli", "launcher/allocation",
                      "launcher/topology", "launcher/placement", "launcher/slurm", "launcher/launch", "launcher/pipeline",
                      "launcher/features/closed_output.h", "launcher/supervise"],
    "launcher/advice": ["scaling", "launcher/base/error.h"],
    "launcher/report": ["launcher/base", "launcher/system", "launcher/cli", "launcher/slurm", "launcher/launch",
                        "launcher/health/node_info.h", "launcher/health/verdict.h"],
    "launcher/tune": ["launcher/base", "launcher/cli", "launcher/health/node_info.h"],
    "launcher/ddlrun": ["launcher/advice", "launcher/report", "launcher/tune", "launcher/base", "launcher/cost", "launcher/system", "launcher/cli", "launcher/placement", "launcher/protocol/rank_list.h",
                        "launcher/features", "launcher/shim/energy_meter.h", "launcher/shim/run_program.h",
                        "launcher/slurm", "launcher/pipeline", "launcher/supervise", "launcher/restart", "launcher/health"],
    "launcher": [],  # main.cc
    "trainer/core": [],
    "trainer/backend": ["trainer/core"],
    "trainer/backend/reference": ["trainer/core", "trainer/backend"],
    "trainer/backend/cpu": ["trainer/core", "trainer/backend"],
    "trainer/backend/cuda": ["trainer/core", "trainer/backend", "trainer/backend/cuda/runtime", "trainer/backend/cuda/norms",
                             "trainer/backend/cuda/stem", "trainer/backend/cuda/libraries",
                             "trainer/backend/cuda/bottleneck"],
    "trainer/backend/cuda/runtime": ["trainer/core", "trainer/backend"],
    "trainer/backend/cuda/norms": ["trainer/core", "trainer/backend", "trainer/backend/cuda/runtime"],
    "trainer/backend/cuda/stem": ["trainer/core", "trainer/backend", "trainer/backend/cuda/runtime", "trainer/backend/cuda/norms"],
    "trainer/backend/cuda/bottleneck": ["trainer/core", "trainer/backend", "trainer/backend/cuda/runtime",
                                        "trainer/backend/cuda/norms", "trainer/backend/cuda/libraries"],
    "trainer/backend/cuda/libraries": ["trainer/core", "trainer/backend", "trainer/backend/cuda/runtime",
                                       "trainer/backend/cuda/norms"],
    "trainer/model": ["trainer/core", "trainer/backend"],
    "trainer/data": ["trainer/core", "trainer/data/files", "trainer/data/images"],
    "trainer/data/files": ["trainer/core"],
    "trainer/data/images": ["trainer/core"],
    "trainer/checkpoint": ["trainer/core"],
    "trainer/comm": ["launcher/protocol/launchers.h", "trainer/core"],
    "trainer/telemetry/text": ["trainer/core"],
    "trainer/telemetry/meters": ["trainer/core", "trainer/telemetry/text"],
    "trainer/telemetry/formats": ["trainer/core", "trainer/telemetry/text", "trainer/telemetry/meters", "trainer/options"],
    "trainer/telemetry/stacks": ["trainer/core"],
    "trainer/control": ["trainer/core", "trainer/checkpoint/run_lock.h", "trainer/telemetry"],
    "trainer/train": ["trainer/core", "trainer/model", "trainer/data"],
    "trainer/train/monitor": [*BELOW_TRAIN],
    "trainer/train/step": [*BELOW_TRAIN, "trainer/train/config.h", "trainer/train/schedule.h"],
    "trainer/train/state": [*BELOW_TRAIN, "trainer/train/config.h", "trainer/train/schedule.h", "trainer/train/step"],
    "trainer/train/evaluation": [*BELOW_TRAIN, "trainer/train/config.h", "trainer/train/schedule.h", "trainer/train/step",
                                 "trainer/train/state"],
    "trainer/train/logging": [*BELOW_TRAIN, "trainer/train/config.h", "trainer/train/schedule.h", "trainer/train/step",
                             "trainer/train/state", "trainer/train/evaluation", "trainer/train/monitor"],
    "trainer/train/loop": [*BELOW_TRAIN, "trainer/train"],
    "trainer/options": ["trainer/core", "trainer/data", "trainer/model", "trainer/train/config.h"],
    "trainer/outputs": ["launcher/protocol/rank_environment.h", "trainer/core", "trainer/checkpoint", "trainer/comm", "trainer/telemetry", "trainer/options",
                        "trainer/train/config.h", "trainer/train/logging"],
    "trainer/program": [*BELOW_TRAIN, "trainer/train", "trainer/options", "trainer/outputs", "launcher/protocol/launchers.h",
                        "launcher/protocol/rank_environment.h"],
    "trainer": ["launcher/protocol/rank_environment.h"],  # main.cc
    "ddldata": ["trainer/core", "trainer/data", "trainer/telemetry/text"],
    "ddlctl": ["launcher/base", "launcher/cost", "launcher/cli/site_config.h", "launcher/diagnose", "launcher/protocol/attachment.h", "launcher/protocol/job_status.h",
               "launcher/launch/child_environment.h",
               "launcher/system/child_process.h", "launcher/system/files.h", "launcher/system/run_directory.h",
               "trainer/checkpoint", "trainer/control",
               "trainer/core", "trainer/telemetry"],
    "manual": ["rankfile", "launcher", "trainer/options", "ddldata/options.h", "ddlctl/options.h", "bench/ddlbench"],
    "bench/base": ["scaling", "launcher/base/error.h", "launcher/cli/site_config.h", "trainer/core"],
    "bench/run_log": ["trainer/core"],
    "bench/microbenchmarks": ["bench/base", "trainer", "launcher/protocol/rank_environment.h", "rankfile/cpu_list.h"],
    "bench/ddlbench": ["bench/base", "bench/report", "bench/ddlbench/runs", "bench/ddlbench/log_analysis", "bench/microbenchmarks", "scaling",
                       "launcher/cli/quoting.h", "trainer/core", "trainer/telemetry"],
    "bench/ddlbench/log_analysis": ["bench/base", "bench/run_log", "trainer/core", "trainer/telemetry"],
    "bench/ddlbench/runs": ["bench/base", "bench/run_log", "bench/microbenchmarks", "bench/ddlbench/log_analysis", "launcher/cli/quoting.h", "launcher/protocol/launchers.h",
                            "trainer/core", "trainer/telemetry"],
    "bench/report": ["bench/base", "bench/run_log", "bench/report/readers", "bench/report/charts", "scaling", "trainer/core"],
    "bench/report/readers": ["bench/base", "bench/run_log", "trainer/core"],
    "bench/report/charts": ["bench/base", "bench/run_log", "trainer/core"],
    "bench": ["bench/base", "trainer", "launcher", "rankfile"],
    "tests": ["rankfile", "scaling", "launcher", "trainer", "ddldata", "ddlctl", "manual", "bench"],
}
# Only the files of these directories themselves put the parts below together; each part has arrows of its own.
TOPS = ("launcher", "trainer")
# A room that has more units (a header with its source) is two.
MAX_UNITS = 25
# The inside of a back end is seen in its own directory and by the registry alone.
BACKEND_INSIDES = re.compile(r"^trainer/backend/(reference|cpu|cuda)/")

# Headers of libraries -> the only places that may include them.
FOREIGN = [
    (re.compile(r"^((cuda|cudnn|cublas|nvrtc|nccl)[^/]*\.h|nvtx3/)"),
     ("trainer/backend/cuda/", "trainer/comm/nccl", "trainer/telemetry/gpu_sampler", "trainer/telemetry/meters/kernel_trace",
      "tests/trainer/backend/cuda", "tests/trainer/comm/nccl")),
    (re.compile(r"dnnl"), ("trainer/backend/cpu/",)),
    (re.compile(r"^mpi\.h"), ("trainer/comm/mpi_module.cc", "bench/baselines/mpi", "tests/")),
    (re.compile(r"^pmix"), ("trainer/comm/rendezvous", "launcher/health/node/rendezvous_pmix",
                            "tests/cluster/pmix")),
    (re.compile(r"^uc[pst]/"), ("launcher/health/node/fabric_ucx",)),
    (re.compile(r"^hwloc"), ("launcher/topology/", "tests/launcher/")),
    (re.compile(r"^CLI/"), ("support/command_line.cc",)),
]

# What only a program's main may do (launcher/base/environment is the one snapshot of the environment).
MAIN_ONLY = re.compile(r"\b(getenv|std::exit|std::cout|std::cerr|exit)\s*(\(|<<)")
MAINS = re.compile(r"(^|/)(main|[a-z_]*_main)\.cc$|^launcher/base/environment\.cc$|^launcher/shim/own_environment\.(h|cc)$|^trainer/(program/launch_environment|outputs/report_error)\.cc$|^tests/|^bench/")
PURE = re.compile(r"^launcher/placement/|^rankfile/(?!main)|^scaling/|^launcher/advice/|^launcher/health/(check_(?!step)|node_info|pair_schedule|verdict)")
IMPURE = re.compile(r"\bstd::[io]?fstream\b|\bsystem_clock\b|\b(getenv|fopen|open|gettimeofday|clock_gettime|hwloc_\w+)\s*\(")
BACKEND_IFDEF = re.compile(r"^\s*#\s*if.*\b(DDLRUN_HAS_|USE_CUDA|__CUDACC__|DDLRUN_ONEDNN|DDLRUN_MPI)")
# oneDNN's version is looked at in one place.
ONEDNN_VERSION = re.compile(r"\bDNNL_VERSION_")
ONEDNN_VERSION_PLACE = "trainer/backend/cpu/onednn.h"
# What reads the beginning of a text as a number and passes over the rest: support/number.h takes all or nothing.
PART_NUMBER = re.compile(r"\b(ato(i|l|ll|f)|(std::)?sto(i|l|ll|ul|ull|f|d|ld))\s*\(|\bstrto\w+\s*\([^;]*,\s*(nullptr|NULL|0)\s*[,)]"
                         r"|^\s*std::from_chars\s*\([^;]*\);", re.MULTILINE)
# Where numbers may be read so, and why.
PART_NUMBER_PLACES = {
    "tests/": "tests read what they have written themselves",
    "trainer/comm/nccl_obstacle.cc": "a variable is read as NCCL reads it",
}
# Functions of std::filesystem that throw what a file system does, unless they are given an error_code.
THROWING = re.compile(
    r"\b(?:fs|filesystem)::(absolute|canonical|weakly_canonical|relative|proximate|copy|copy_file|create_\w+|current_path|equivalent"
    r"|exists|is_\w+|file_size|hard_link_count|last_write_time|permissions|read_symlink|remove|remove_all|rename|resize_file|space"
    r"|status|symlink_status|temp_directory_path|(?:recursive_)?directory_iterator(?:\s+\w+)?)\s*(?=\()")
# The error_code by its name, or a file_status, of which questions never throw.
GUARDED = re.compile(r"(^|[(,\s])(error|ignored|unknown|gone|status|[^()]*->symlink_status\(\w+\))\s*$"
                     r"|^(fs|std::filesystem)::(symlink_)?status\(.*,\s*(error|ignored)\)$")
MEMBER_THROWING = re.compile(r"(\.|->)(is_directory|is_regular_file|is_symlink|file_size|last_write_time|symlink_status|increment)\(\)")
# A loop over a directory throws where its next entry cannot be read, whatever its error_code.
FOLDER_LOOP = re.compile(r"\bfor\s*\([^;]*:\s*(std::filesystem|fs)::(recursive_)?directory_iterator\b")
# Where such a call may throw, and why.
THROWING_PLACES = {
    "tests/": "a test that cannot have its files fails",
}
# What reads or prints fractions in a shell script, with a comma for the point in many locales.
FRACTIONS = re.compile(r"\bawk\b|\bEPOCHREALTIME\b|\bprintf\b[^|]*%[0-9.]*f")
SCRIPTS = ("bench", "tools")
# The third line of a decision.
DECISION_STATUS = re.compile(r"Status: (accepted[.,;]|superseded by \[\d{4}\]\(|superseded in part by \[\d{4}\]\(|withdrawn: )")
IFDEF_PLACES = ("trainer/backend/registry", "trainer/backend/cuda/", "trainer/comm/factory")


def folder_of(path):
    """The entry of ARROWS that counts for `path`; None if there is none."""
    directory = max((f for f in ARROWS if path.startswith(f + "/")), key=len, default=None)
    return None if directory in TOPS and path.count("/") > 1 else directory


def circle_of(arrows):
    """Directories of which each may include the next, and the last one the first; none if there is no circle."""
    def folder_of_target(target):
        return max((f for f in arrows if (target + "/").startswith(f + "/")), key=len)

    done = set()

    def search(directory, before):
        if directory in before:
            return before[before.index(directory):]
        if directory not in done:
            for target in arrows[directory]:
                nearest = folder_of_target(target)
                if nearest != directory and (circle := search(nearest, [*before, directory])):
                    return circle
            done.add(directory)
        return []

    return next((circle for directory in arrows if (circle := search(directory, []))), [])


def may_include(path, included):
    """Whether the arrows let the file `path` include the header `included` of ours."""
    if inside := BACKEND_INSIDES.match(included):
        if path.startswith(("trainer/backend/registry", "tests/")):
            return True
        if not path.startswith(inside.group(0)):
            return False
    directory = folder_of(path)
    if directory is None:
        return False
    # For the tops (launcher, trainer) everything below: main puts the parts together.
    if directory in TOPS and included.startswith(directory + "/"):
        return True
    if folder_of(included) == directory or included.startswith(SHARED):
        return True
    return any(included == target or included.startswith(target + "/") for target in ARROWS[directory])


def problems_of(path, text):
    lines = text.splitlines()
    if folder_of(path) is None:
        yield 1, f"{path.rsplit('/', 1)[0]} has no arrows: tests/lint/tree_rules.py says for each directory what it may include"
    if len(lines) > MAX_LINES and path not in LONG_FILES:
        yield len(lines), f"{len(lines)} lines: a file past {MAX_LINES} has two jobs; split it"
    if "SPDX-License-Identifier: Apache-2.0" not in "\n".join(lines[:2]):
        yield 1, "the first line must be: // SPDX-License-Identifier: Apache-2.0"
    if path.endswith(".h") and "#pragma once" not in lines:
        yield 1, "a header needs #pragma once"
    for number, line in enumerate(lines, 1):
        include = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
        if include:
            header = include.group(1)
            if header.split("/")[0] in SOURCES and not header.endswith(".pb.h") and not may_include(path, header):
                yield number, f"{path.rsplit('/', 1)[0]} must not include {header} (doc/architecture.md, arrows)"
            for pattern, places in FOREIGN:
                if pattern.search(header) and not path.startswith(places):
                    yield number, f"<{header}> may be included only in {', '.join(places)}"
            continue
        code = re.sub(r'"(\\.|[^"\\])*"', '""', line.split("//")[0])
        if MAIN_ONLY.search(code) and not MAINS.search(path):
            yield number, "libraries never exit, print or read the environment; main does"
        if PURE.search(path) and IMPURE.search(code):
            yield number, "this directory is pure: no environment, file, clock or hwloc"
        if BACKEND_IFDEF.search(line) and not path.startswith(IFDEF_PLACES):
            yield number, "what was built is known in the registry and CMake only: no #if here"
        if ONEDNN_VERSION.search(code) and path != ONEDNN_VERSION_PLACE:
            yield number, f"what differs between oneDNN's versions belongs into {ONEDNN_VERSION_PLACE}"


def argument_of(text, start):
    """What is between the parenthesis at `start` and the one that closes it."""
    depth = 0
    for end in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        if depth == 0:
            return text[start + 1:end]
    return text[start + 1:]


def without_comments(text):
    """The text with as many lines, without comments and what is in quotation marks."""
    return "\n".join(re.sub(r'"(\\.|[^"\\])*"', '""', re.sub(r"//.*", "", line) if '"' not in line else line.split(" //")[0])
                     for line in text.splitlines())


def problems_of_reading(path, text):
    """Numbers that are read in part, and calls that throw what a file system does."""
    code = without_comments(text)
    if not path.startswith(tuple(PART_NUMBER_PLACES)):
        for call in PART_NUMBER.finditer(code):
            yield code.count("\n", 0, call.start()) + 1, "reads a number and passes over what is behind it: support::WholeNumber (support/number.h)"
    if path.startswith(tuple(THROWING_PLACES)):
        return
    for call in THROWING.finditer(code):
        argument = argument_of(code, call.end()).strip()
        if argument and not GUARDED.search(argument):
            yield code.count("\n", 0, call.start()) + 1, f"{call.group(1).split()[0]} throws: give it an error_code named error, ignored, unknown or gone"
    for rule in (MEMBER_THROWING, FOLDER_LOOP):
        for call in rule.finditer(code):
            yield code.count("\n", 0, call.start()) + 1, "throws what a file system does: give it an error_code, and a directory's iterator increment(error)"


def classes_of(text):
    """The line and the full name of each class, struct or enumeration that a header defines, but for nested ones."""
    namespace = ""
    for number, line in enumerate(text.splitlines(), 1):
        if opened := re.match(r"namespace ([\w:]+) \{", line):
            namespace = opened.group(1) + "::"
        if defined := re.match(r"(?:class|struct|union|enum(?: class)?) (\w+)[^;]*\{", line):
            yield number, namespace + defined.group(1)


def problems_of_names(headers):
    """PATH, LINE, PROBLEM for each name that two of these headers, (path, text), give to a class: one program that has
    both takes the functions of one for those of the other."""
    known = {}
    for path, text in headers:
        for number, name in classes_of(text):
            if known.setdefault(name, path) != path:
                yield path, number, f"{name} is in {known[name]} too: one name has one meaning"


def problems_of_script(text):
    """Of a shell script; none of any other file."""
    if not re.match(r"#!.*\b(ba)?sh\n", text) or "LC_ALL=C" in text:
        return
    for number, line in enumerate(text.splitlines(), 1):
        if not line.lstrip().startswith("#") and FRACTIONS.search(line):
            yield number, "computes by the user's locale: export LC_ALL=C"


def problems_of_scripts(root):
    for directory in SCRIPTS:
        for file in sorted((root / directory).rglob("*")):
            if file.is_file() and file.suffix == "":
                for number, problem in problems_of_script(file.read_text(encoding="utf-8")):
                    yield file.relative_to(root).as_posix(), number, problem


def problems_of_rooms(root):
    """Directories of sources with too many units."""
    for directory in SOURCES[:-1]:
        for room in sorted({file.parent for file in (root / directory).rglob("*") if file.suffix in SUFFIXES}):
            units = {file.stem for file in room.iterdir() if file.suffix in SUFFIXES}
            if len(units) > MAX_UNITS:
                yield room.relative_to(root).as_posix(), 1, f"{len(units)} units: a room past {MAX_UNITS} has two purposes; part it"


def problems_of_decisions(root):
    """The index of the decisions names each of them, and each has a status."""
    index = root / "doc/decisions/README.md"
    text = index.read_text(encoding="utf-8") if index.exists() else ""
    for file in sorted((root / "doc/decisions").glob("[0-9]*.md")):
        if f"]({file.name})" not in text:
            yield index.relative_to(root).as_posix(), 1, f"does not name {file.name}"
        third = [*file.read_text(encoding="utf-8").splitlines(), "", "", ""][2]
        if not DECISION_STATUS.match(third):
            yield file.relative_to(root).as_posix(), 3, "the third line has no status: doc/decisions/README.md shows the forms"


def main(root):
    found = 0
    headers = []
    for directory in SOURCES:
        for file in sorted((root / directory).rglob("*")):
            if file.suffix not in SUFFIXES:
                continue
            path = file.relative_to(root).as_posix()
            text = file.read_text(encoding="utf-8")
            # Each test and each benchmark is a program of its own.
            if file.suffix == ".h" and directory not in ("bench", "tests"):
                headers.append((path, text))
            for number, problem in [*problems_of(path, text), *problems_of_reading(path, text)]:
                print(f"{path}:{number}: {problem}")
                found += 1
    for path, number, problem in [*problems_of_names(headers), *problems_of_scripts(root), *problems_of_rooms(root),
                                 *problems_of_decisions(root)]:
        print(f"{path}:{number}: {problem}")
        found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
