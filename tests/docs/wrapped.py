#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The text of every page (*.md) has lines of at most 120 characters; tables and code may be longer.

usage: wrapped.py check ROOT      prints FILE:LINE for each longer line, exit status 1 if there is any
       wrapped.py wrap ROOT       fills the paragraphs that have one anew
"""

import pathlib
import re
import sys
import textwrap

WIDTH = 120
# The start of an entry of a list: its text goes on under its first word.
ENTRY = re.compile(r"( *)([-*] \[.\] |[-*] |\d+\. )")


def pages(root):
    places = ["*.md", "doc/**/*.md", "rankfile/*.md", "tests/**/*.md", "packaging/**/*.md"]  # not what builds and runs leave
    return sorted(page for place in places for page in root.glob(place))


def paragraphs(lines):
    """(first, last + 1) of each run of lines that are one paragraph or one entry of a list."""
    start = None
    in_code = False
    for number, line in enumerate([*lines, ""]):
        is_fence = line.lstrip().startswith("```")
        is_text = not in_code and not is_fence and line.strip() and not re.match(r" *(\||#|>|<)", line)
        if start is not None and (not is_text or ENTRY.match(line)):
            yield start, number
            start = None
        if is_fence:
            in_code = not in_code
        if is_text and start is None:
            start = number


def is_too_long(line):
    """Whether it is, and could be broken."""
    return len(line) > WIDTH and " " in line.strip()[:WIDTH]


def filled(lines):
    entry = ENTRY.match(lines[0])
    first = entry.group(0) if entry else re.match(" *", lines[0]).group(0)
    rest = " " * len(first)
    text = " ".join(line.strip() for line in [lines[0][len(first):], *lines[1:]])
    return textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False,
                         break_on_hyphens=False)


def main(command, root):
    found = 0
    for page in pages(pathlib.Path(root)):
        lines = page.read_text(encoding="utf-8").splitlines()
        for start, end in reversed(list(paragraphs(lines))):
            long_lines = [number for number in range(start, end) if is_too_long(lines[number])]
            if not long_lines:
                continue
            if command == "wrap":
                lines[start:end] = filled(lines[start:end])
                continue
            for number in long_lines:
                print(f"{page}:{number + 1}: {len(lines[number])} characters, more than {WIDTH}: python3 tests/docs/wrapped.py wrap .")
                found += 1
        if command == "wrap":
            page.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
