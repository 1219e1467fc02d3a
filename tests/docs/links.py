#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The links of the pages (*.md), and the tables of contents of the long ones.

  - what a link of a page names is there: the file or directory, from the directory of the page; behind '#' a heading of the
    page, spelled as GitHub makes it a link
  - a page of doc/ of more than 100 lines has a table of contents before its first '##': a list of links, one for each
    heading '##', with its text and in its order, and nothing else
  - a path of the sources in `code` of a page of doc/, as `trainer/train/config.h`, is there, with or without its extension
  - doc/reference.md, the index of the reference, leads to each page of doc/reference/ and to each of their headings '##',
    and none of these pages is longer than 300 lines

Other places (https:, mailto:) are not looked at.

usage: links.py check ROOT      prints FILE:LINE for each mistake, exit status 1 if there is any
"""

import pathlib
import re
import sys
from collections import Counter
from dataclasses import dataclass

from wrapped import pages

LONG_PAGE = 100  # lines
LONGEST_REFERENCE = 300  # lines of a page of the reference
CODE = re.compile(r"(?<!`)(`+)(?!`)(?:(?!\n\n).)+?(?<!`)\1(?!`)", re.DOTALL)
LINK = re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")
ENTRY = re.compile(r" *[-*] \[(.*)\]\(#([^()\s]+)\) *$")
ELSEWHERE = re.compile(r"[a-z]+:")
SOURCE_PATH = re.compile(r"`((?:support|rankfile|scaling|launcher|trainer|ddldata|ddlctl|manual|bench|tests|tools|cmake)/[a-z0-9_./-]+)`")


@dataclass
class Heading:
    line: int
    level: int
    text: str
    anchor: str


def without_code(lines):
    """The lines with those of fenced blocks empty."""
    in_code = False
    for line in lines:
        is_fence = line.lstrip().startswith("```")
        yield "" if in_code or is_fence else line
        in_code ^= is_fence


def anchor_of(heading):
    """What GitHub makes of the text of a heading: lower case, no marks but '-' and '_', '-' for a blank."""
    text = LINK.sub(r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def headings(text):
    found = []
    seen = Counter()
    for number, line in enumerate(without_code(text.splitlines()), 1):
        match = re.match(r"(#{1,6}) +(.*?) *$", line)
        if match:
            anchor = anchor_of(match.group(2))
            repeated = f"-{seen[anchor]}" if seen[anchor] else ""
            seen[anchor] += 1
            found.append(Heading(number, len(match.group(1)), match.group(2), anchor + repeated))
    return found


def links(text):
    """(line, target) of each link; its text may go on in the next line."""
    prose = "\n".join(without_code(text.splitlines()))
    prose = CODE.sub(lambda code: re.sub(r"[^\n]", "x", code.group(0)), prose)
    for link in LINK.finditer(prose):
        yield prose.count("\n", 0, link.start()) + 1, link.group(2)


def link_problems(root, page, text):
    for line, target in links(text):
        if ELSEWHERE.match(target):
            continue
        path, _, anchor = target.partition("#")
        named = (page.parent / path).resolve() if path else page.resolve()
        if not named.exists() or not named.is_relative_to(root.resolve()):
            yield line, f"{target}: there is no {path} beside the page"
        elif anchor and named.suffix != ".md":
            yield line, f"{target}: {path} is no page that has headings"
        elif anchor and anchor not in [heading.anchor for heading in headings(named.read_text(encoding="utf-8"))]:
            yield line, f"{target}: no heading is '#{anchor}'"


def path_problems(root, text):
    """Paths of sources that are not there (any more)."""
    for number, line in enumerate(without_code(text.splitlines()), 1):
        for path in SOURCE_PATH.findall(line):
            named = root / path
            if not named.exists() and not any(named.parent.glob(named.name + ".*")):
                yield number, f"`{path}`: there is no such file or directory"


def contents_problems(text):
    lines = text.splitlines()
    if len(lines) <= LONG_PAGE:
        return
    sections = [heading for heading in headings(text) if heading.level == 2]
    end = sections[0].line - 1 if sections else len(lines)
    entries = [match.groups() for match in map(ENTRY.match, without_code(lines[:end])) if match]
    if not entries:
        yield 1, f"{len(lines)} lines and no table of contents: a list of links '- [Heading](#heading)' before the first '##'"
        return
    wanted = [(heading.text, heading.anchor) for heading in sections]
    for entry in entries:
        if entry not in wanted:
            yield 1, f"the table of contents has [{entry[0]}](#{entry[1]}), but no '##' is that"
    for entry in wanted:
        if entry not in entries:
            yield 1, f"the table of contents has no [{entry[0]}](#{entry[1]})"
    if sorted(entries) == sorted(wanted) and entries != wanted:
        yield 1, "the table of contents is not in the order of the headings"
    elif len(entries) > len(set(entries)):
        yield 1, "the table of contents names a heading twice"


def index_problems(root):
    """PAGE, LINE, PROBLEM of what the index of the reference leaves out."""
    index = root / "doc" / "reference.md"
    named = {target for _, target in links(index.read_text(encoding="utf-8"))} if index.exists() else set()
    for page in sorted((root / "doc" / "reference").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        name = f"reference/{page.name}"
        sections = [heading for heading in headings(text) if heading.level == 2]
        if not sections and name not in named:
            yield page, 1, "doc/reference.md does not lead to this page"
        for heading in sections:
            if f"{name}#{heading.anchor}" not in named:
                yield page, heading.line, f"doc/reference.md does not lead to {name}#{heading.anchor}"
        if (length := len(text.splitlines())) > LONGEST_REFERENCE:
            yield page, length, f"{length} lines: split the page, at most {LONGEST_REFERENCE}"


def problems_of(root, page):
    text = page.read_text(encoding="utf-8")
    yield from link_problems(root, page, text)
    if root / "doc" in page.parents:
        yield from contents_problems(text)
        yield from path_problems(root, text)


def main(command, root):
    if command != "check":
        sys.exit(__doc__)
    root = pathlib.Path(root)
    found = 0
    for page in pages(root):
        for line, problem in problems_of(root, page):
            print(f"{page}:{line}: {problem}")
            found += 1
    for page, line, problem in index_problems(root):
        print(f"{page}:{line}: {problem}")
        found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
