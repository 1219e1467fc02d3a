#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of README.md and doc/ as they stand there.

Behind the language of a code block stands where it is run:

  sh local       here, in a directory of the page's own, with the installed programs in PATH
  sh mpi         the same, where mpicc is
  sh pytorch     the same, where PyTorch is
  sh source      in the directory of the sources, with a home of its own and `module`
  sh slurm       on the login node of the test cluster (tests/cluster/docs.bats)
  bash sbatch    the same, as a job script; with --test-only it is submitted, not run
  sh tools       elsewhere: RUN_ELSEWHERE names by what
  LANGUAGE file=NAME    a file that blocks of any page use
  text output    what the command before it prints: the same lines in this order, with other numbers and names; "..." stands for
                 anything. Standard output and standard error of ranks have no common order: a block for each
  text, yaml, vectors, ...    no commands

A block that has no language, or a command that has no place, is a mistake.

usage: doc_commands.py check ROOT                          every block is one of these
       doc_commands.py run ROOT PREFIX PLACE               exit status 77: nothing could be run here
       doc_commands.py list ROOT PLACE                     PAGE LINE of each block
       doc_commands.py show ROOT PAGE LINE                 the block
       doc_commands.py compare ROOT PAGE LINE < OUTPUT     whether OUTPUT looks like what the page says
"""

import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

COMMAND_LANGUAGES = ("sh", "bash", "console", "shell")
PLACES = ("local", "mpi", "pytorch", "source", "slurm", "sbatch", "tools")
OTHER_LANGUAGES = ("text", "yaml", "vectors", "python", "c", "cmake", "json")
# Commands that take too long for a test here -> the file of the tree that runs them.
RUN_ELSEWHERE = {"tools/demo": "tools/check", "tools/package": "tools/check", "tools/check": ".ci/run", "tools/wheel": "tools/check",
                 "pip": "tests/packages/wheel-in-clean-root", "ddlrun": "tests/packages/wheel-in-clean-root"}
# Directories whose pages are run, too.
FOLDERS = ("doc", "doc/performance", "doc/reference", "doc/user-guide")
# What the pages call the machine that a reader sits at.
HOST_IN_PAGES = "laptop"


@dataclass
class Block:
    page: str
    line: int  # of the opening fence
    language: str
    words: list[str]  # behind the language
    text: str
    outputs: list[str] = field(default_factory=list)  # of the blocks "text output" behind it

    @property
    def place(self):
        return next((word for word in self.words if word in PLACES), None)

    @property
    def file(self):
        return next((word[len("file="):] for word in self.words if word.startswith("file=")), None)


def pages(root):
    return ["README.md", "CONTRIBUTING.md", "rankfile/README.md", "tests/cluster/README.md",
            *sorted(path.relative_to(root).as_posix() for directory in FOLDERS for path in (root / directory).glob("*.md"))]


def blocks_of(page, text):
    """The fenced blocks of a page; a fence may be indented, as in a list."""
    blocks = []
    opened = None
    for number, line in enumerate(text.splitlines(), 1):
        fence = re.match(r"( *)```(.*)$", line)
        if opened is None and fence:
            words = fence.group(2).split()
            opened = Block(page, number, words[0] if words else "", words[1:], "")
            indent = len(fence.group(1))
        elif opened is not None and line.strip() == "```":
            if opened.language == "text" and opened.words == ["output"]:
                if blocks:
                    blocks[-1].outputs.append(opened.text)
            else:
                blocks.append(opened)
            opened = None
        elif opened is not None:
            opened.text += line[indent:] + "\n"
    return blocks


def all_blocks(root):
    return [block for page in pages(root) for block in blocks_of(page, (root / page).read_text(encoding="utf-8"))]


def problems_of(root, block):
    if block.language in COMMAND_LANGUAGES:
        if block.place is None and block.file is None:
            yield f"a command that no test runs: write ```{block.language} and one of {', '.join(PLACES)}, or ```text"
        if block.place == "tools":
            for line in block.text.splitlines():
                command = line.split("#")[0].split()
                if not command:
                    continue
                runner = RUN_ELSEWHERE.get(command[0])
                if runner is None:
                    yield f"{command[0]} is run by nothing that RUN_ELSEWHERE names"
                elif not (root / runner).exists() or command[0] not in (root / runner).read_text(encoding="utf-8"):
                    yield f"{command[0]} is no longer run by {runner}"
    elif block.language not in OTHER_LANGUAGES:
        yield f"the language '{block.language}' is none of {', '.join(COMMAND_LANGUAGES + OTHER_LANGUAGES)}"


def indented_commands(page, text):
    """Code blocks by four blanks, which have no language."""
    lines = text.splitlines()
    for number, (before, line) in enumerate(zip(lines, lines[1:]), 2):
        if page.startswith("rankfile/"):  # its grammars
            return
        if not before.strip() and re.match(r"    \S", line):
            yield number, "a code block by indentation: write ``` and its language"


def unclosed_blocks(text):
    """Blocks that another one, or the end of the page, begins in."""
    opened = None
    for number, line in enumerate(text.splitlines(), 1):
        fence = re.match(r" *```(.*)$", line)
        if not fence:
            continue
        if opened and fence.group(1).strip():
            yield opened, "a code block that is not closed"
        opened = number if fence.group(1).strip() or not opened else None
    if opened:
        yield opened, "a code block that is not closed"


def shape(line):
    """A line without what differs from run to run."""
    line = re.sub(r"/tmp/\S+", "PATH", line)
    line = re.sub(r"\d[\d.:T+-]*\d|\d", "0", line)
    line = re.sub(r" +(?=0)|(?<=0) +", " ", line)  # in columns other numbers have other blanks beside them
    return line.strip()


def missing_line(outputs, output):
    """The first line of `outputs` that `output` has not, each of them in its order; None if it has all."""
    lines = output.splitlines()
    for expected in outputs:
        at = 0
        for line in expected.splitlines():
            if line.strip() in ("", "..."):
                continue
            pattern = ".*".join(re.escape(shape(part)) for part in line.split("..."))
            while at < len(lines) and not re.fullmatch(pattern, shape(lines[at])):
                at += 1
            if at == len(lines):
                return line
            at += 1
    return None


def obstacle(place, root):
    """Why blocks of this place cannot be run here; None if they can."""
    if place == "mpi" and not shutil.which("mpicc"):
        return "mpicc is not installed"
    if place == "source" and os.environ.get("DDLRUN_BUILD") != str(root / "build" / "release"):
        return "this is not the build of the preset release"
    return None


def run_block(block, directory, environment, preamble=""):
    run = subprocess.run(["bash", "-euo", "pipefail", "-c", preamble + block.text], cwd=directory, env=environment,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=1200)
    print(f"== {block.page}:{block.line}\n{block.text}-- exit status {run.returncode}\n{run.stdout}", flush=True)
    if run.returncode != 0:
        return f"{block.page}:{block.line}: exit status {run.returncode}"
    output = run.stdout.replace(socket.gethostname(), HOST_IN_PAGES)
    line = missing_line(block.outputs, output)
    return f"{block.page}:{block.line}: its output has no line like '{line}'" if line else None


def module_preamble(root):
    """Shell text that defines `module`; None where there is none."""
    for system in ("environment-modules", "lmod"):
        text = subprocess.run(["bash", "-c", f". {root}/tests/module_systems.bash; module_start {system}"],
                              stdout=subprocess.PIPE, text=True, check=False).stdout
        if text:
            return "set +eu\n" + text + "\nset -eu\n"
    return None


def run_place(root, prefix, place):
    reason = obstacle(place, root)
    if reason:
        print(f"left out: {reason}")
        return 77
    problems = []
    with tempfile.TemporaryDirectory() as scratch:
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("SLURM", "DDLRUN_SITE", "CMAKE_", "OMPI_COMM"))}
        environment["PATH"] = f"{prefix}/bin:{environment['PATH']}"
        environment["HOME"] = scratch
        # Open MPI refuses root unless told twice; a container is often root.
        environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        preamble = ""
        if place == "source":
            preamble = module_preamble(root)
            if preamble is None:
                print("left out: neither Environment Modules nor Lmod is here (tools/bootstrap check gets them)")
                return 77
        blocks = all_blocks(root)
        for block in blocks:
            if block.file or block.place != place:
                continue
            directory = pathlib.Path(scratch, block.page.replace("/", "_"))
            if not directory.exists():
                directory.mkdir()
                for file in blocks:
                    if file.file:
                        (directory / file.file).write_text(file.text, encoding="utf-8")
            problems.append(run_block(block, root if place == "source" else directory, environment, preamble))
    problems = [problem for problem in problems if problem]
    print("\n".join(problems))
    return 1 if problems else 0


def check(root):
    found = 0
    for page in pages(root):
        text = (root / page).read_text(encoding="utf-8")
        problems = [*indented_commands(page, text), *unclosed_blocks(text)]
        for block in blocks_of(page, text):
            problems += [(block.line, problem) for problem in problems_of(root, block)]
        for line, problem in problems:
            print(f"{page}:{line}: {problem}")
            found += 1
    return 1 if found else 0


def find(root, page, line):
    return next(block for block in all_blocks(root) if (block.page, block.line) == (page, int(line)))


def main(command, root, *arguments):
    root = pathlib.Path(root).resolve()
    if command == "check":
        return check(root)
    if command == "run":
        return run_place(root, *arguments)
    if command == "list":
        for block in all_blocks(root):
            if block.place == arguments[0]:
                print(block.page, block.line, *block.words)
        return 0
    block = find(root, *arguments)
    if command == "show":
        print(block.text, end="")
        return 0
    line = missing_line(block.outputs, sys.stdin.read())
    if line:
        print(f"{block.page}:{block.line}: there is no line like '{line}'")
    return 1 if line else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
