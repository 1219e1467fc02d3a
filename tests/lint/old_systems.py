#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether the sources compile on RHEL 8: each file that needs nothing but the C and C++ libraries is compiled for glibc 2.28 on
x86-64, by zig's clang, which has the headers of every glibc, and on POWER where it asks which processor it is compiled for (all
others read the same there; tools/cross compiles everything).  Then the shim is linked for both.

usage: old_systems.py ROOT BUILD SHIM_SOURCE ...
What has compiled in this clone or another is kept in ${XDG_CACHE_HOME:-~/.cache}/ddlrun/old_systems.  Exit status: 0 all
compiled, 1 not, 77 zig cannot be had here.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

SOURCES = ("support", "rankfile", "scaling", "launcher", "trainer", "ddldata", "bench", "tests")
# With the options that the compilers of such systems have by themselves: clang's long double would need glibc 2.32 on POWER.
TARGETS = {"x86_64-linux-gnu": [], "powerpc64le-linux-gnu": ["-mabi=ibmlongdouble"]}
GLIBC = "2.28"  # of RHEL 8
# Headers of one kind of processor: the sources ask for them there alone, so they cannot be compiled for all.
PROCESSOR_HEADER = re.compile(r"(intrin|altivec|arm_neon|arm_sve)\.h$")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
ASKS_FOR_PROCESSOR = re.compile(r"__(x86_64|powerpc|POWER|ALTIVEC|VSX|SSE|AVX|F16C|BYTE_ORDER)|long double|std::endian")
# glibc has it since 2.34: what this check is for, and the proof that it works.
TOO_NEW = "#include <unistd.h>\nint main() { return close_range(3, 4, 0); }\n"


class Unavailable(Exception):
    pass


def cache():
    directory = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "ddlrun/old_systems"
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def find_zig(root):
    done = run([root / "tools/zig"])
    if done.returncode != 0:
        raise Unavailable(done.stderr.strip())
    return pathlib.Path(done.stdout.strip())


def library_flags(zig, target, work):
    """The directories of headers and the macros that zig gives its clang for this C library."""
    source = work / "nothing.cc"
    source.write_text("", encoding="utf-8")
    done = subprocess.run([zig, "c++", "-target", f"{target}.{GLIBC}", "-std=c++20", "-c", "-v", source, "-o", work / "nothing.o"],
                          capture_output=True, text=True, check=True, cwd=work)
    words = shlex.split(next(line for line in done.stderr.splitlines() if " -cc1 " in line))
    flags = []
    for option, value in zip(words, words[1:]):
        if option == "-D":
            flags += [option, value]
        elif option == "-isystem":
            flags += [option, str((work / value).resolve())]  # zig names directories below its own in short
    return flags


def folders_of(flags):
    return [pathlib.Path(value) for option, value in zip(flags, flags[1:]) if option == "-isystem"]


class Sources:
    """The files of the tree and what they include."""

    def __init__(self, root):
        self.root = root
        self.includes = {}

    def includes_of(self, path):
        if path not in self.includes:
            self.includes[path] = INCLUDE.findall((self.root / path).read_text(encoding="utf-8"))
        return self.includes[path]

    def headers_of(self, path, directories):
        """(our headers, headers of the libraries) that `path` includes, however far down; None if one of them is neither."""
        ours, theirs, waiting = {path}, set(), [path]
        while waiting:
            current = waiting.pop()
            for kind, name in self.includes_of(current):
                if kind == '"' and (self.root / name).is_file():
                    if name not in ours:
                        ours.add(name)
                        waiting.append(name)
                elif any((directory / name).is_file() for directory in directories):
                    theirs.add(name)
                else:
                    return None
        return ours, theirs

    def ask_for_processor(self, paths):
        return any(ASKS_FOR_PROCESSOR.search((self.root / path).read_text(encoding="utf-8")) for path in paths)

    def digest(self, paths):
        total = hashlib.sha256()
        for path in sorted(paths):
            total.update(path.encode() + b"\0" + (self.root / path).read_bytes())
        return total.hexdigest()


def sources_of(file):
    """The sources that one command compiles: several, where CMake has joined them (CMAKE_UNITY_BUILD)."""
    if not file.name.startswith("unity_"):
        return [file]
    return [pathlib.Path(name) for name in re.findall(r'^#include "(.*)"$', file.read_text(encoding="utf-8"), re.MULTILINE)]


def commands_of_build(root, build):
    """What CMake defines for each file, and the file that joins it with others: their names do not meet."""
    database = build / "compile_commands.json"
    if not database.exists():
        raise Unavailable(f"{database} is not there: configure by a preset")
    macros, joined = {}, {}
    for entry in json.loads(database.read_text(encoding="utf-8")):
        words = [word for word in shlex.split(entry["command"]) if word.startswith("-D")]
        for path in sources_of(pathlib.Path(entry["file"])):
            if path.is_relative_to(root):
                macros.setdefault(path.relative_to(root).as_posix(), words)
                joined.setdefault(path.relative_to(root).as_posix(), entry["file"])
    return macros, joined


def run(command, **more):
    return subprocess.run(command, capture_output=True, text=True, check=False, **more)


def check_target(zig, target, sources, macros, joined, work, kept):
    """Problems, one text each, and how many files were looked at: all for the first target, for others what could differ."""
    is_first = target == next(iter(TARGETS))
    flags = library_flags(zig, target, work)
    compiler = [zig, "clang", f"--target={target}", *TARGETS[target], "-nostdinc", "-std=c++20", "-Wno-psabi", *flags, "-I", sources.root]
    probe = run([*compiler, "-fsyntax-only", "-x", "c++", "-"], input=TOO_NEW)
    if "close_range" not in probe.stderr:
        return [f"{target}: close_range compiles, so this check finds nothing: {probe.stderr}"], 0

    def anywhere(words):
        return " ".join(map(str, words)).replace(str(sources.root), "")

    files, headers = {}, set()
    for directory in SOURCES:
        for file in sorted((sources.root / directory).rglob("*.cc")):
            path = file.relative_to(sources.root).as_posix()
            found = sources.headers_of(path, folders_of(flags))
            is_left_out = path.startswith("bench/") and path not in macros  # by DDLRUN_BENCH=OFF, with what CMake defines for it
            if found is not None and not is_left_out and (is_first or sources.ask_for_processor(found[0])):
                files[path] = sources.digest(found[0]) + anywhere(macros.get(path, []))
                headers |= found[1]

    passed_file = kept / f"{target}.json"
    key = anywhere(compiler)
    passed = json.loads(passed_file.read_text(encoding="utf-8")) if passed_file.exists() else {}
    passed = passed.get(key, {})
    waiting = [path for path in files if passed.get(path) != files[path]]
    if waiting:
        # The libraries' headers once, not for each file again.
        common = work / f"{target}.h"
        common.write_text("".join(f"#include <{name}>\n" for name in sorted(headers) if not PROCESSOR_HEADER.search(name)),
                          encoding="utf-8")
        compiled = work / f"{target}.pch"
        done = run([*compiler, "-x", "c++-header", common, "-o", compiled])
        if done.returncode != 0:
            return [done.stderr], len(files)
        compiler += ["-include-pch", compiled]

    def compile_together(paths):
        """What is wrong with them, one text each."""
        text = "".join(f'#include "{path}"\n' for path in paths)
        done = run([*compiler, *macros.get(paths[0], []), "-fsyntax-only", "-x", "c++", "-"], input=text, cwd=sources.root)
        if done.returncode == 0:
            return paths, []
        if len(paths) == 1:
            return [], [f"{target}.{GLIBC}: {done.stderr}"]
        apart = [compile_together([path]) for path in paths]
        return sum((good for good, _ in apart), []), sum((wrong for _, wrong in apart), [])

    groups = {}
    for path in waiting:
        groups.setdefault((joined.get(path, path), *macros.get(path, [])), []).append(path)
    problems = []
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        for good, wrong in pool.map(compile_together, groups.values()):
            problems += wrong
            passed |= {path: files[path] for path in good}
            passed_file.write_text(json.dumps({key: passed}), encoding="utf-8")
    (work / f"{target}.pch").unlink(missing_ok=True)
    return problems, len(files)


def link_shim(zig, target, sources, shim_sources, macros, work):
    """The shim needs no C++ library, so that this is quick."""
    defined = {word for path in shim_sources for word in macros.get(pathlib.Path(path).resolve().relative_to(sources.root).as_posix(), [])}
    program = work / f"ddlrun-rank.{target}"
    done = run([zig, "c++", "-target", f"{target}.{GLIBC}", *TARGETS[target], "-std=c++20", "-O1", "-g0", "-fno-exceptions", "-fno-rtti",
                "-nostdlib++", "-I", sources.root, *sorted(defined), *shim_sources, "-o", program])
    return [f"ddlrun-rank for {target}.{GLIBC} is not linked: {done.stderr}"] if done.returncode != 0 else []


def main(root, build, shim_sources):
    work = build / "old_systems"
    work.mkdir(parents=True, exist_ok=True)
    try:
        macros, joined = commands_of_build(root, build)
        zig = find_zig(root)
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return 77
    sources = Sources(root)
    failed = False
    for target in TARGETS:
        problems, count = check_target(zig, target, sources, macros, joined, work, cache())
        problems += link_shim(zig, target, sources, shim_sources, macros, work)
        print("\n".join([*problems, f"{target}.{GLIBC}: {count} files, {len(problems)} problems"]))
        failed = failed or bool(problems) or count == 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3:]))
