#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Flips a bit of a weight in the memory of a running process, as memory that fails does.

flip_weight.py PID FILE NAME: wherever the values of this tensor of FILE lie. Ends with 77 where the system does not allow it.
"""
import importlib.util
import os
import re
import sys


def read(path):
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "safetensors.py")
    spec = importlib.util.spec_from_file_location("safetensors_file", beside)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.read(path)


def writable(pid):
    with open(f"/proc/{pid}/maps") as maps:
        for line in maps:
            begin, end, access = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+)", line).groups()
            if access.startswith("rw"):
                yield int(begin, 16), int(end, 16)


def flip(pid, values):
    """How many places were changed; the process may end meanwhile, of the first of them."""
    flipped = 0
    places = list(writable(pid))
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        for begin, end in places:
            try:
                memory.seek(begin)
                content = memory.read(end - begin)
                at = content.find(values)
                while at >= 0:
                    memory.seek(begin + at + 2)
                    memory.write(bytes([values[2] ^ 0x10]))
                    flipped += 1
                    at = content.find(values, at + 1)
            except (OSError, OverflowError):
                continue  # memory of a device, or none any more
    return flipped


def main(pid, path, name):
    values = read(path)[name][2][:64]
    try:
        flipped = flip(pid, values)
    except PermissionError as error:
        print(error)
        sys.exit(77)
    print(f"{flipped} places of {name} in process {pid}")
    sys.exit(0 if flipped > 0 else 1)


if __name__ == "__main__":
    main(*sys.argv[1:])
