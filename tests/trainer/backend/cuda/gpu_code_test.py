#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A library has code of every file of kernels for every GPU that it was built for, and for no other.

usage: gpu_code_test.py LIBRARY KERNELS ARCHITECTURE ...

KERNELS: how many files of kernels are linked into it.  ARCHITECTURE: as in CMAKE_CUDA_ARCHITECTURES, 70-real, 90-virtual, 80 (both).
Reads the section .nv_fatbin itself: cuobjdump is not in every installation of CUDA.
"""

import collections
import pathlib
import struct
import subprocess
import sys

MAGIC = 0xBA55ED50  # of one file's code, which holds an entry for each architecture
KINDS = {1: "virtual", 2: "real"}  # PTX, machine code


def section(library: str, name: str) -> bytes:
    for line in subprocess.check_output(["readelf", "--section-headers", "--wide", library], text=True).splitlines():
        words = line.partition("]")[2].split()
        if words[:1] == [name]:
            offset, size = int(words[3], 16), int(words[4], 16)
            return pathlib.Path(library).read_bytes()[offset:offset + size]
    sys.exit(f"{library} has no section {name}: no GPU code at all")


def architectures(code: bytes) -> collections.Counter:
    """{"70-real": number of files that have it, ...}"""
    found = collections.Counter()
    place = 0
    while place < len(code):
        magic, _, header, size = struct.unpack_from("<IHHQ", code, place)
        if magic != MAGIC:  # padding between two files
            place += 8
            continue
        entry = place + header
        place = entry + size
        while entry < place:
            kind, _, entry_header, entry_size = struct.unpack_from("<HHIQ", code, entry)
            (architecture,) = struct.unpack_from("<I", code, entry + 28)
            found[f"{architecture}-{KINDS.get(kind, kind)}"] += 1
            entry += entry_header + entry_size
    return found


def main(library: str, kernels: str, *asked_for: str) -> None:
    wanted = set()
    for architecture in asked_for:
        number, _, kind = architecture.partition("-")
        wanted |= {f"{number}-{kind}"} if kind else {f"{number}-real", f"{number}-virtual"}
    found = architectures(section(library, ".nv_fatbin"))
    print(f"{library}: {dict(sorted(found.items()))}")
    if found != {architecture: int(kernels) for architecture in wanted}:
        sys.exit(f"expected {kernels} files of kernels for each of {sorted(wanted)}")


main(*sys.argv[1:])
