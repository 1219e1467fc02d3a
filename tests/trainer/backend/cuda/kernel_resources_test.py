#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No kernel keeps registers in memory (spills) on the GPUs that it is written for.

usage: kernel_resources_test.py compile_commands.json [ARCHITECTURE ...]

ARCHITECTURE: as nvcc has it, sm_90 (default: sm_90 sm_100). Compiles every file of kernels once more for each, and prints what ptxas
says with -v: registers, shared memory, bytes spilled.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

DEFAULT = ("sm_90", "sm_100")
KERNEL = re.compile(r"Compiling entry function '(\S+)'.*\n(?:.*\n)??\s*\d+ bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads\n"
                    r".*Used (\d+) registers(?:.*?(\d+) bytes smem)?")


def commands(database: str) -> dict[str, list[str]]:
    """{file of kernels: the command that compiles it, without what it is compiled for and into}"""
    found = {}
    for entry in json.loads(pathlib.Path(database).read_text(encoding="utf-8")):
        if not entry["file"].endswith(".cu"):
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


def resources(command: list[str], directory: pathlib.Path, architecture: str) -> list[tuple[str, int, int, int]]:
    """[(kernel, registers, bytes of shared memory, bytes spilled), ...]"""
    done = subprocess.run([*command, f"-arch={architecture}", "-cubin", "-o", "/dev/null", "-Xptxas=-v"], cwd=directory, capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(command)}:\n{done.stderr}")
    return [(readable(symbol), int(registers), int(shared or 0), int(stores) + int(loads))
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
        for kernel, registers, shared, spilled in found:
            place = f"{pathlib.Path(source).name} {kernel}"
            is_wrong = spilled > 0
            failed += is_wrong
            kernels += 1
            print(f"{architecture:7}{registers:4} registers{shared:7} bytes shared{spilled:5} spilled{' WRONG' if is_wrong else ''}  {place}")
    print(f"{kernels} kernels, {failed} spill")
    if not kernels or failed:
        sys.exit(1)


main(*sys.argv[1:])
