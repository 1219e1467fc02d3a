#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No kernel keeps registers in memory (spills) on the GPUs that it is written for, and each begins with SynchronizeGridDependencies (launch.cuh).

usage: kernel_resources_test.py compile_commands.json [ARCHITECTURE ...]

ARCHITECTURE: as nvcc has it, sm_90 (default: sm_90 sm_100). Compiles every file of kernels once more for each, and prints what ptxas
says with -v: registers, shared memory, bytes spilled. From compute capability 9.0 on its PTX must wait for the kernel in front of it before
it accesses memory that another kernel may write.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

DEFAULT = ("sm_90", "sm_100")
KERNEL = re.compile(r"Compiling entry function '(\S+)'.*\n(?:.*\n)??\s*\d+ bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads\n"
                    r".*Used (\d+) registers(?:.*?(\d+) bytes smem)?")
ENTRY = re.compile(r"\.entry (\w+)\((.*?)\n}", re.DOTALL)
ACCESS = re.compile(r"\b(?:ld|st|red|atom|cp)\.(?!param|shared|local|const)|griddepcontrol\.wait")


def commands(database: str) -> dict[str, list[str]]:
    """{file of kernels of the product: the command that compiles it, without what it is compiled for and into}"""
    found = {}
    for entry in json.loads(pathlib.Path(database).read_text(encoding="utf-8")):
        if not entry["file"].endswith(".cu") or "/tests/" in entry["file"]:
            continue
        words = shlex.split(entry["command"])
        words = words[next(i for i, word in enumerate(words) if word.endswith("nvcc")):]  # behind ccache
        del words[words.index("-o"):words.index("-o") + 2]
        found[entry["file"]] = [word for word in words if not word.startswith(("--generate-code", "--threads")) and word != "-c"]
    return found


def readable(symbol: str) -> str:
    """BackwardKernel<__half, (trainer::TensorCores)1>"""
    name = subprocess.run(["c++filt", "-p", symbol], capture_output=True, text=True, check=True).stdout.strip()
    head, bracket, arguments = name.partition("<")
    return head.rpartition("::")[2] + bracket + arguments


def waits_first(ptx: str) -> dict[str, bool]:
    """{symbol of a kernel: whether it waits before it accesses memory, if it does}"""
    found = {symbol: ACCESS.search(body) for symbol, body in ENTRY.findall(ptx)}
    return {symbol: first is None or first[0] == "griddepcontrol.wait" for symbol, first in found.items()}


def resources(command: list[str], directory: pathlib.Path, architecture: str) -> list[tuple[str, int, int, int, bool]]:
    """[(kernel, registers, bytes of shared memory, bytes spilled, whether it waits where it should), ...]"""
    with tempfile.TemporaryDirectory() as kept:
        done = subprocess.run([*command, f"-arch={architecture}", "-cubin", "-o", "/dev/null", "-Xptxas=-v", "-keep", "-keep-dir", kept],
                              cwd=directory, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{shlex.join(command)}:\n{done.stderr}")
        waits = {}
        if int(re.sub(r"\D", "", architecture)) >= 90:
            for ptx in pathlib.Path(kept).glob("*.ptx"):
                waits |= waits_first(ptx.read_text(encoding="utf-8"))
            if not waits:
                sys.exit(f"{shlex.join(command)}: left no PTX")
    return [(readable(symbol), int(registers), int(shared or 0), int(stores) + int(loads), not waits or waits[symbol])
            for symbol, stores, loads, registers, shared in KERNEL.findall(done.stdout + done.stderr)]


def main(database: str, *wanted: str) -> None:
    directory = pathlib.Path(database).resolve().parent
    sources = commands(database)
    nvcc = next(iter(sources.values()))[0]
    known = subprocess.run([nvcc, "--list-gpu-code"], capture_output=True, text=True, check=True).stdout.split()
    jobs = [(source, command, architecture) for source, command in sources.items() for architecture in wanted or DEFAULT if architecture in known]
    with concurrent.futures.ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        results = list(pool.map(lambda job: resources(job[1], directory, job[2]), jobs))
    failed = kernels = 0
    for (source, _, architecture), found in zip(jobs, results):
        for kernel, registers, shared, spilled, waits in found:
            place = f"{pathlib.Path(source).name} {kernel}"
            problem = " SPILLS" * (spilled > 0) + " DOES NOT WAIT" * (not waits)
            failed += problem != ""
            kernels += 1
            print(f"{architecture:7}{registers:4} registers{shared:7} bytes shared{spilled:5} spilled{problem}  {place}")
    print(f"{kernels} kernels, {failed} wrong")
    if not kernels or failed:
        sys.exit(1)


main(*sys.argv[1:])
