#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the numbers of formats in the sources with the table in doc/formats.md, so that whoever raises one says there
what becomes of older and newer files.  In the sources these are

  - constants:      inline constexpr int kCheckpointFormat = 1;      (also ...Protocol)
  - first lines:    "ddltraind scan 1\\n"

and in the table `kCheckpointFormat` or `ddltraind scan 1`, then the file, in the column "set in".  Prints FILE: PROBLEM and
exits 1 if there is any.

usage: format_versions.py ROOT
"""

import pathlib
import re
import sys

SOURCES = ("support", "rankfile", "scaling", "launcher", "trainer", "ddldata", "ddlctl", "bench")
PAGE = "doc/formats.md"
CONSTANT = re.compile(r"\bconstexpr int (k\w*(?:Format|Protocol)) = (\d+);")
FIRST_LINE = re.compile(r'"(ddl[a-z]+ [a-z]+ (\d+))\\n"')
COMMENT = re.compile(r"^ *//.*$", re.MULTILINE)
ROW = re.compile(r"\| (\d+) \| `([^`]+)`, ([\w./]+) \|")


def numbers_of_sources(root):
    """{(name, file): number}"""
    found = {}
    for directory in SOURCES:
        for path in sorted((root / directory).rglob("*")):
            if path.suffix not in (".h", ".cc", ".cu", ".cuh"):
                continue
            text = COMMENT.sub("", path.read_text(encoding="utf-8"))
            file = path.relative_to(root).as_posix()
            for match in [*CONSTANT.finditer(text), *FIRST_LINE.finditer(text)]:
                found[match[1], file] = int(match[2])
    return found


def numbers_of_page(root):
    text = (root / PAGE).read_text(encoding="utf-8")
    return {(match[2], match[3]): int(match[1]) for match in ROW.finditer(text)}


def problems(root):
    sources, page = numbers_of_sources(root), numbers_of_page(root)
    for (name, file), number in sorted(sources.items()):
        told = page.get((name, file))
        if told is None:
            yield f"{file}: {name} ({number}) is not in the table of {PAGE}"
        elif told != number:
            yield f"{file}: {name} is {number}, and {told} in the table of {PAGE}"
    for name, file in sorted(page.keys() - sources.keys()):
        yield f"{PAGE}: {name} is not in {file}"


def main():
    if len(sys.argv) != 2:
        print(__doc__)
        return 64
    found = list(problems(pathlib.Path(sys.argv[1])))
    for problem in found:
        print(problem)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
