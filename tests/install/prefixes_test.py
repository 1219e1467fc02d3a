#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""That CMAKE_PREFIX_PATH is enough to find every library, and that each target links what it includes.  Each library gets a prefix of its
own, where no compiler looks by itself; CMake configures with these; then each compile command must name the prefix of what its sources
include, directly or by headers of ours.  Twice: with fmt beside spdlog, and as a part of it.  Compiles one file each time.

usage: prefixes_test.py [UNITTEST-OPTION ...]     Exit status: 0 all passed or skipped, 1 not
"""

import functools
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
USR = pathlib.Path("/usr")
# library -> (headers below include, other files below /usr, what an include of it begins with)
LIBRARIES = {
    "fmt": (("fmt",), ("lib*/**/libfmt.*", "lib*/**/cmake/fmt", "lib*/**/pkgconfig/fmt.pc"), "fmt/"),
    "spdlog": (("spdlog",), ("lib*/**/libspdlog.*", "lib*/**/cmake/spdlog", "lib*/**/pkgconfig/spdlog.pc"), "spdlog/"),
    "yaml-cpp": (("yaml-cpp",), ("lib*/**/libyaml-cpp.*", "lib*/**/pkgconfig/yaml-cpp.pc"), "yaml-cpp/"),
    "hwloc": (("hwloc", "hwloc.h"), ("lib*/**/libhwloc.*", "lib*/**/pkgconfig/hwloc.pc"), "hwloc"),
    "isa-l": (("isa-l", "isa-l.h"), ("lib*/**/libisal.*", "lib*/**/pkgconfig/libisal.pc"), "isa-l"),
    "CLI11": (("CLI",), ("share/cmake/CLI11", "lib*/**/cmake/CLI11"), "CLI/"),
    "nlohmann_json": (("nlohmann",), ("share/cmake/nlohmann_json", "lib*/**/cmake/nlohmann_json"), "nlohmann/"),
}
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:<([^>]+)>|"([^"]+)")', re.MULTILINE)


def make_prefix(directory, headers, patterns):
    """Copies of a library's files, which name the new place; links to what is linked.  False: the library is elsewhere."""
    patterns = (*(f"include/{name}" for name in headers), *patterns)
    found = [list(USR.glob(pattern)) for pattern in patterns]
    for path in sum(found, []):
        copy = directory / path.relative_to(USR)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, copy)
        elif path.suffix == ".h":
            shutil.copy(path, copy)
        elif path.suffix == ".pc":
            copy.write_text(re.sub(r"/usr\b", str(directory), path.read_text(encoding="utf-8")), encoding="utf-8")
        else:
            copy.symlink_to(path)
    return bool(found[0]) and any(found[len(headers):])


def bundle(prefixes):
    """spdlog as its own build leaves it by default: a copy of fmt in it, of which its .pc says nothing."""
    shutil.move(prefixes / "fmt/include/fmt", prefixes / "spdlog/include/spdlog/fmt/bundled")
    for file in (prefixes / "spdlog").glob("lib*/**/spdlog.pc"):
        file.write_text(re.sub("-DSPDLOG_FMT_EXTERNAL|^Requires: .*$", "", file.read_text(encoding="utf-8"), flags=re.MULTILINE), encoding="utf-8")
    shutil.rmtree(prefixes / "fmt")


@functools.cache
def included(path):
    """What a file includes, by headers of ours, too."""
    if not path.is_file():
        return frozenset()  # of a generated file, or in an #if
    foreign = set()
    for angle, quoted in INCLUDE.findall(path.read_text(encoding="utf-8")):
        if angle:
            foreign.add(angle)
        else:
            foreign |= included(ROOT / quoted)
    return frozenset(foreign)


class Prefixes(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        holder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        self.addCleanup(holder.cleanup)
        self.build = pathlib.Path(holder.name) / "build"
        self.prefixes = pathlib.Path(holder.name) / "prefixes"
        for name, (headers, patterns, _) in LIBRARIES.items():
            if not make_prefix(self.prefixes / name, headers, patterns):
                self.skipTest(f"{name} is not in {USR}")

    def configure(self):
        """[(sources, command)]"""
        done = subprocess.run(
            ["cmake", "--preset", "release", "-S", ROOT, "-B", self.build, f"-DCMAKE_PREFIX_PATH={';'.join(map(str, self.prefixes.iterdir()))}",
             *(f"-DDDLRUN_{name}=OFF" for name in ("WITH_CUDA", "WITH_MPI", "WITH_PMIX", "WITH_UCX", "WITH_ONEDNN", "WITH_PNG"))],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        commands = []
        for entry in json.loads((self.build / "compile_commands.json").read_text(encoding="utf-8")):
            source = pathlib.Path(entry["file"])
            joined = [pathlib.Path(quoted) for _, quoted in INCLUDE.findall(source.read_text(encoding="utf-8"))] if "/Unity/" in entry["file"] else [source]
            commands.append((joined, entry["command"]))
        return commands

    def check(self, commands, where_fmt_is):
        wrong, seen = set(), set()
        for sources, command in commands:
            for name, (_, _, begins) in LIBRARIES.items():
                place = where_fmt_is if name == "fmt" else self.prefixes / name / "include"
                users = [source for source in sources if any(header.startswith(begins) for header in included(source))]
                seen |= {name for _ in users}
                if users and not re.search(rf"(-isystem |-I){re.escape(str(place))}( |$)", command):
                    wrong |= {f"{source.relative_to(ROOT)} includes {name}, which its target does not link" for source in users}
        self.assertEqual(sorted(wrong), [])
        self.assertEqual(seen, set(LIBRARIES))

    def compile_one(self, commands, place):
        """A file that uses fmt and has little else."""
        (command,) = [command for sources, command in commands if ROOT / "trainer/telemetry/stacks/thread_stacks.cc" in sources]
        words = shlex.split(command)
        words = words[:words.index("-o")] + words[words.index("-o") + 2:]
        done = subprocess.run([*words, "-fsyntax-only", "-MD", "-MF", self.build / "includes"], cwd=self.build, capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        headers = (self.build / "includes").read_text(encoding="utf-8")
        self.assertIn(f"{place}/fmt/format.h", headers)
        self.assertNotIn("/usr/include/fmt/", headers)

    def test_fmt_beside_spdlog(self):
        commands = self.configure()
        place = self.prefixes / "fmt/include"
        self.check(commands, place)
        self.compile_one(commands, place)

    def test_fmt_as_a_part_of_spdlog(self):
        bundle(self.prefixes)
        commands = self.configure()
        place = self.build / "bundled-fmt"
        self.check(commands, place)
        self.compile_one(commands, place)


if __name__ == "__main__":
    unittest.main()
