#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The linter finds what it is there to find: one violation at a time, and none in code that keeps the rules."""

import pathlib
import tempfile
import unittest

from tree_rules import (ARROWS, circle_of, may_include, problems_of, problems_of_decisions, problems_of_names, problems_of_reading,
                        problems_of_script)

HEAD = "// SPDX-License-Identifier: Apache-2.0\n"
# How many problems a file has: path, lines, number.
FILES = [
    ("trainer/model/network_definition.h", '#include "trainer/backend/backend.h"', 0),
    # Includes against the arrows.
    *[(path, f'#include "{header}"', 1) for path, header in [
        ("rankfile/hostlist.cc", "launcher/base/error.h"),
        ("launcher/main.cc", "trainer/core/error.h"),
        ("trainer/core/tensor.cc", "trainer/backend/ops.h"),
        ("trainer/model/network_definition.cc", "trainer/train/loop/trainer.h"),
        ("trainer/data/images/jpeg.cc", "trainer/comm/communicator.h"),
        ("trainer/main.cc", "launcher/placement/launch_plan.h"),
        ("trainer/model/network_definition.cc", "trainer/backend/cpu/cpu_backend.h"),
        ("launcher/placement/planner.cc", "launcher/base/environment.h"),
        ("launcher/slurm/slurm_job.cc", "launcher/launch/launcher.h"),
        ("launcher/shim/main.cc", "launcher/protocol/rank_job.h"),
        ("launcher/base/messages.cc", "launcher/main.h"),
        ("trainer/core/tensor.cc", "tests/trainer/helper.h")]],
    # Each directory has arrows.
    ("launcher/new/part.cc", "", 1), ("launcher/main.cc", "", 0), ("ddldata/main.cc", "", 0),
    # Headers of libraries.
    ("trainer/train/loop/trainer.cc", "#include <mpi.h>", 1), ("trainer/comm/mpi_module.cc", "#include <mpi.h>", 0),
    ("trainer/comm/mpi_communicator.cc", "#include <mpi.h>", 1),
    ("trainer/model/network_definition.cc", "#include <oneapi/dnnl/dnnl.hpp>", 1),
    ("trainer/core/tensor.cc", "#include <cuda_runtime.h>", 1),
    *[(path, "#include <CLI/CLI.hpp>", int(path != "support/command_line.cc"))
      for path in ("ddlctl/options.cc", "support/command_line.h", "tests/ddlctl/options_test.cc", "support/command_line.cc")],
    ("trainer/backend/cpu/linear.cc", "#if DNNL_VERSION_MAJOR >= 3", 1),
    ("trainer/backend/cpu/onednn.h", "#if DNNL_VERSION_MAJOR >= 3", 0),
    # What only main does.
    *[(path, line, int(path != "trainer/main.cc")) for path in ("trainer/data/images/jpeg.cc", "trainer/main.cc")
      for line in ('auto x = getenv("HOME");', "std::exit(1);", "std::cout << 1;", "exit(2);")],
    ("launcher/placement/planner.cc", "std::ifstream file(path);", 1),
    ("trainer/core/tensor.cc", "\n" * 599, 1), ("trainer/core/tensor.cc", "\n" * 598, 0),
    ("trainer/train/loop/trainer.cc", "#ifdef DDLRUN_HAS_CPU", 1), ("trainer/backend/registry.cc", "#ifdef DDLRUN_HAS_CPU", 0),
]
# Which header a file may include.
INCLUDES = [
    ("trainer/main.cc", "launcher/protocol/rank_environment.h", True),
    ("trainer/main.cc", "trainer/train/loop/trainer.h", True),
    ("trainer/backend/registry.cc", "trainer/backend/cpu/cpu_backend.h", True),
    ("trainer/core/tensor.cc", "support/spelling.h", True),
    ("support/spelling.cc", "rankfile/hostlist.h", False),
    ("launcher/placement/planner.cc", "launcher/topology/node_topology.h", True),
    ("launcher/main.cc", "launcher/ddlrun/run_ddlrun.h", True),
]
# Lines that read a number in part or throw what a file system does, but for those of tests; and such as do not.
READING = [(line, 1) for line in (
    "int n = std::atoi(text.c_str());", "long n = atol(text);", "double x = std::atof(text);", "int n = std::stoi(text);",
    "auto n = std::stoull(text, nullptr, 16);", "auto x = stod(text);", "long n = strtol(text, nullptr, 10);",
    "double x = std::strtod(text.data(), NULL);", "auto n = std::strtoul(text.c_str(),\n nullptr, 10);",
    "  std::from_chars(text.data(), text.data() + text.size(), n);", "path = fs::absolute(path);",
    "if (std::filesystem::exists(path)) return;", "fs::remove_all(Directory(a, b));", "auto size = fs::file_size(directory /\n name);",
    "fs::directory_iterator entry(directory);", "if (entry.is_directory()) return;", "time = entry->last_write_time();",
    "for (const auto& entry : fs::directory_iterator(directory, error)) {")] + [(line, 0) for line in (
        "const long n = strtol(text, &end, 10);", "// atoi(text)", 'Say("atoi(x)");', "int Ratoi(int x);",
        "const auto [stop, error] = std::from_chars(begin, end, n);", "history(1);", "path = fs::absolute(path, error);",
        "fs::create_directories(\n    directory, ignored);", "fs::exists(status);", "entry.is_directory(ignored);",
        "for (fs::directory_iterator entry(directory, error), end; !error && entry != end;", "entry.increment(error)) {",
        "// fs::exists(path)", "fs::path(text).filename();")]


class TreeRules(unittest.TestCase):
    def test_files(self):
        for path, lines, number in FILES:
            with self.subTest(path=path, lines=lines[:50]):
                pragma = "#pragma once\n" if path.endswith(".h") else ""
                self.assertEqual(len(list(problems_of(path, HEAD + pragma + lines + "\n"))), number)
        self.assertEqual(len(list(problems_of("trainer/core/tensor.h", "int x;\n"))), 2)  # licence and pragma

    def test_arrows(self):
        for path, header, may in INCLUDES:
            with self.subTest(path=path, header=header):
                self.assertEqual(may_include(path, header), may)
        for arrows, circle in [(ARROWS, []), ({"a": ["b"], "b": ["b/c.h", "c"], "c": []}, []),
                               ({"a": ["b"], "b": ["c/x.h"], "c": ["b"]}, ["b", "c"]),
                               ({"a": ["a/b"], "a/b": ["a/x.h"]}, ["a", "a/b"])]:
            self.assertEqual(circle_of(arrows), circle)

    def test_a_class_name_has_one_meaning(self):
        header = HEAD + "namespace launcher {{\n{} Tail {{\n  struct Part {{}};\n}};\n}}\n"
        first = ("launcher/supervise/failure_report.h", header.format("class"))
        for second, found in [(("launcher/shim/relay.h", header.format("struct")), [("launcher/shim/relay.h", 3)]),
                              (("trainer/core/tail.h", header.format("class").replace("launcher", "trainer")), []),
                              (("launcher/shim/relay.h", "class Tail;\n"), [])]:
            self.assertEqual([(path, line) for path, line, _ in problems_of_names([first, second])], found)

    def test_numbers_and_calls_of_the_file_system(self):
        for line, number in READING:
            with self.subTest(line=line):
                self.assertEqual(len(list(problems_of_reading("trainer/program/data_loaders.cc", line + "\n"))), number)
                self.assertEqual(list(problems_of_reading("tests/trainer/sources_test.cc", line + "\n")), [])

    def test_scripts_compute_with_points(self):
        for line in ["awk '{ print $1 / 2 }'", "start=$EPOCHREALTIME", "printf '%5.1f' $x"]:
            with self.subTest(line=line):
                self.assertEqual(len(list(problems_of_script(f"#!/usr/bin/env bash\n{line}\n"))), 1)
                self.assertEqual(list(problems_of_script(f"#!/usr/bin/env bash\nexport LC_ALL=C\n{line}\n")), [])
                self.assertEqual(list(problems_of_script(f"#!/usr/bin/env python3\n{line}\n")), [])
        self.assertEqual(list(problems_of_script("#!/bin/sh\n# awk\nprintf %s x\n")), [])

    def test_each_decision_is_in_the_index_and_has_a_status(self):
        with tempfile.TemporaryDirectory() as name:
            directory = pathlib.Path(name) / "doc/decisions"
            directory.mkdir(parents=True)

            def problems(third):
                (directory / "0001-first.md").write_text(f"# 0001: first\n\n{third}\n", encoding="utf-8")
                return [(path, line) for path, line, _ in problems_of_decisions(pathlib.Path(name))]

            self.assertEqual(problems("Status: accepted."), [("doc/decisions/README.md", 1)])
            (directory / "README.md").write_text("- [0001](0001-first.md): first\n", encoding="utf-8")
            for status in ["accepted.", "accepted; supersedes [0000](0000-a.md) in part.", "superseded by [0002](0002-b.md).",
                           "superseded in part by [0002](0002-b.md): its name.", "withdrawn: it was slower."]:
                self.assertEqual(problems("Status: " + status), [], status)
            for third in ["", "## Context", "Status: superseded", "Status: withdrawn.", "Status: new.", "accepted."]:
                self.assertEqual(problems(third), [("doc/decisions/0001-first.md", 3)], third)


if __name__ == "__main__":
    unittest.main()
