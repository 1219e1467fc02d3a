#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The linter finds what it is there to find: one violation at a time, and none in code that keeps the rules."""

import pathlib
import tempfile
import unittest

from tree_rules import (ARROWS, circle_of, may_include, problems_of, problems_of_decisions, problems_of_names, problems_of_reading,
                        problems_of_script)

HEAD = "// SPDX-License-Identifier: Apache-2.0\n"


def found(path, body):
    text = HEAD + ("#pragma once\n" if path.endswith(".h") else "") + body
    return [problem for _, problem in problems_of(path, text)]


class TreeRules(unittest.TestCase):
    def test_clean_file_has_no_problem(self):
        self.assertEqual(found("trainer/model/resnet.h", '#include "trainer/backend/backend.h"\n'), [])

    def test_arrow_against_the_grain(self):
        for path, header in [
            ("rankfile/hostlist.cc", "launcher/base/error.h"),
            ("launcher/main.cc", "trainer/core/error.h"),
            ("trainer/core/shape.cc", "trainer/backend/ops.h"),
            ("trainer/model/resnet.cc", "trainer/train/loop/trainer.h"),
            ("trainer/data/images/jpeg.cc", "trainer/comm/communicator.h"),
            ("trainer/main.cc", "launcher/plan/plan.h"),
            ("trainer/model/resnet.cc", "trainer/backend/cpu/cpu_backend.h"),
            ("launcher/plan/planner.cc", "launcher/base/environment.h"),
            ("launcher/slurm/scontrol.cc", "launcher/launch/launcher.h"),
            ("launcher/shim/main.cc", "launcher/protocol/rank_job.h"),
            ("launcher/base/messages.cc", "launcher/main.h"),
            ("trainer/core/shape.cc", "tests/trainer/helper.h"),
        ]:
            with self.subTest(path=path, header=header):
                self.assertEqual(len(found(path, f'#include "{header}"\n')), 1)

    def test_arrow_with_the_grain(self):
        self.assertTrue(may_include("trainer/main.cc", "launcher/protocol/rank_environment.h"))
        self.assertTrue(may_include("trainer/main.cc", "trainer/train/loop/trainer.h"))
        self.assertTrue(may_include("trainer/backend/registry.cc", "trainer/backend/cpu/cpu_backend.h"))
        self.assertTrue(may_include("trainer/core/shape.cc", "support/spelling.h"))
        self.assertFalse(may_include("support/spelling.cc", "rankfile/hostlist.h"))
        self.assertTrue(may_include("launcher/plan/planner.cc", "launcher/topology/node_topology.h"))
        self.assertTrue(may_include("launcher/main.cc", "launcher/ddlrun/run_ddlrun.h"))

    def test_arrows_make_no_circle(self):
        self.assertEqual(circle_of(ARROWS), [])
        self.assertEqual(circle_of({"a": ["b"], "b": ["b/c.h", "c"], "c": []}), [])
        self.assertEqual(circle_of({"a": ["b"], "b": ["c/x.h"], "c": ["b"]}), ["b", "c"])
        self.assertEqual(circle_of({"a": ["a/b"], "a/b": ["a/x.h"]}), ["a", "a/b"])

    def test_each_folder_has_arrows(self):
        self.assertEqual(len(found("launcher/new/part.cc", "")), 1)
        self.assertEqual(found("launcher/main.cc", ""), [])
        self.assertEqual(found("ddldata/main.cc", ""), [])

    def test_foreign_headers(self):
        self.assertEqual(len(found("trainer/train/loop/trainer.cc", "#include <mpi.h>\n")), 1)
        self.assertEqual(len(found("trainer/model/resnet.cc", "#include <oneapi/dnnl/dnnl.hpp>\n")), 1)
        self.assertEqual(len(found("trainer/core/shape.cc", "#include <cuda_runtime.h>\n")), 1)
        self.assertEqual(found("trainer/comm/mpi_communicator.cc", "#include <mpi.h>\n"), [])
        for path in ("ddlctl/options.cc", "support/command_line.h", "tests/ddlctl/options_test.cc"):
            self.assertEqual(len(found(path, "#include <CLI/CLI.hpp>\n")), 1)
        self.assertEqual(found("support/command_line.cc", "#include <CLI/CLI.hpp>\n"), [])

    def test_the_version_of_onednn_is_seen_in_one_file(self):
        self.assertEqual(len(found("trainer/backend/cpu/linear.cc", "#if DNNL_VERSION_MAJOR >= 3\n")), 1)
        self.assertEqual(found("trainer/backend/cpu/primitives.h", "#pragma once\n#if DNNL_VERSION_MAJOR >= 3\n"), [])

    def test_libraries_do_not_exit_print_or_read_the_environment(self):
        for line in ['auto x = getenv("HOME");', "std::exit(1);", 'std::cout << 1;', "exit(2);"]:
            with self.subTest(line=line):
                self.assertEqual(len(found("trainer/data/images/jpeg.cc", line + "\n")), 1)
                self.assertEqual(found("trainer/main.cc", line + "\n"), [])

    def test_planning_is_pure(self):
        self.assertEqual(len(found("launcher/plan/planner.cc", "std::ifstream file(path);\n")), 1)

    def test_length(self):
        self.assertEqual(len(found("trainer/core/shape.cc", "\n" * 400)), 1)
        self.assertEqual(found("trainer/core/shape.cc", "\n" * 390), [])

    def test_licence_line_and_pragma(self):
        self.assertEqual(len(list(problems_of("trainer/core/shape.h", "int x;\n"))), 2)

    def test_back_ends_are_folders_not_ifdefs(self):
        self.assertEqual(len(found("trainer/train/loop/trainer.cc", "#ifdef DDLRUN_HAS_CPU\n")), 1)
        self.assertEqual(found("trainer/backend/registry.cc", "#ifdef DDLRUN_HAS_CPU\n"), [])

    def test_a_class_name_has_one_meaning(self):
        header = HEAD + "namespace launcher {{\n{} Tail {{\n  struct Part {{}};\n}};\n}}\n"
        files = [("launcher/supervise/tail.h", header.format("class")), ("launcher/shim/relay.h", header.format("struct"))]
        self.assertEqual([(path, line) for path, line, _ in problems_of_names(files)], [("launcher/shim/relay.h", 3)])
        files[1] = ("trainer/core/tail.h", header.format("class").replace("launcher", "trainer"))
        self.assertEqual(list(problems_of_names(files)), [])
        files[1] = ("launcher/shim/relay.h", "class Tail;\n")
        self.assertEqual(list(problems_of_names(files)), [])

    def test_numbers_are_read_whole(self):
        for line in ["int n = std::atoi(text.c_str());", "long n = atol(text);", "double x = std::atof(text);",
                     "int n = std::stoi(text);", "auto n = std::stoull(text, nullptr, 16);", "auto x = stod(text);",
                     "long n = strtol(text, nullptr, 10);", "double x = std::strtod(text.data(), NULL);",
                     "auto n = std::strtoul(text.c_str(),\n nullptr, 10);",
                     "  std::from_chars(text.data(), text.data() + text.size(), n);"]:
            with self.subTest(line=line):
                self.assertEqual(len(list(problems_of_reading("launcher/restart/restarts.cc", line + "\n"))), 1)
                self.assertEqual(list(problems_of_reading("tests/launcher/restart/restarts_test.cc", line + "\n")), [])
        for line in ["const long n = strtol(text, &end, 10);", "// atoi(text)", 'Say("atoi(x)");', "int Ratoi(int x);",
                     "const auto [stop, error] = std::from_chars(begin, end, n);", "history(1);"]:
            with self.subTest(line=line):
                self.assertEqual(list(problems_of_reading("launcher/restart/restarts.cc", line + "\n")), [])

    def test_calls_of_the_file_system_do_not_throw(self):
        for line in ["path = fs::absolute(path);", "if (std::filesystem::exists(path)) return;", "fs::remove_all(Folder(a, b));",
                     "auto size = fs::file_size(folder /\n name);", "fs::directory_iterator entry(folder);",
                     "if (entry.is_directory()) return;", "time = entry->last_write_time();"]:
            with self.subTest(line=line):
                self.assertEqual(len(list(problems_of_reading("trainer/program/sources.cc", line + "\n"))), 1)
                self.assertEqual(list(problems_of_reading("tests/trainer/sources_test.cc", line + "\n")), [])
        loop = "for (const auto& entry : fs::directory_iterator(folder, error)) {\n"
        self.assertEqual(len(list(problems_of_reading("trainer/program/sources.cc", loop))), 1)
        for line in ["path = fs::absolute(path, error);", "fs::create_directories(\n    folder, ignored);", "fs::exists(status);",
                     "for (fs::directory_iterator entry(folder, error), end; !error && entry != end;", "entry.is_directory(ignored);",
                     "entry.increment(error)) {", "// fs::exists(path)", "fs::path(text).filename();"]:
            with self.subTest(line=line):
                self.assertEqual(list(problems_of_reading("trainer/program/sources.cc", line + "\n")), [])

    def test_scripts_compute_with_points(self):
        for line in ["awk '{ print $1 / 2 }'", "start=$EPOCHREALTIME", "printf '%5.1f' $x"]:
            with self.subTest(line=line):
                self.assertEqual(len(list(problems_of_script(f"#!/usr/bin/env bash\n{line}\n"))), 1)
                self.assertEqual(list(problems_of_script(f"#!/usr/bin/env bash\nexport LC_ALL=C\n{line}\n")), [])
                self.assertEqual(list(problems_of_script(f"#!/usr/bin/env python3\n{line}\n")), [])
        self.assertEqual(list(problems_of_script("#!/bin/sh\n# awk\nprintf %s x\n")), [])

    def test_each_decision_is_in_the_index(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name) / "doc/decisions"
            folder.mkdir(parents=True)
            (folder / "0001-first.md").write_text("# 0001: first\n\nStatus: accepted.\n", encoding="utf-8")
            self.assertEqual([problem for _, _, problem in problems_of_decisions(pathlib.Path(name))], ["does not name 0001-first.md"])
            (folder / "README.md").write_text("- [0001](0001-first.md): first\n", encoding="utf-8")
            self.assertEqual(list(problems_of_decisions(pathlib.Path(name))), [])

    def test_each_decision_has_a_status(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name) / "doc/decisions"
            folder.mkdir(parents=True)
            (folder / "README.md").write_text("- [0001](0001-first.md): first\n", encoding="utf-8")

            def problems(third):
                (folder / "0001-first.md").write_text(f"# 0001: first\n\n{third}\n", encoding="utf-8")
                return [(path, line) for path, line, _ in problems_of_decisions(pathlib.Path(name))]

            for status in ["accepted.", "accepted; supersedes [0000](0000-a.md) in part.", "superseded by [0002](0002-b.md).",
                           "superseded in part by [0002](0002-b.md): its name.", "withdrawn: it was slower."]:
                self.assertEqual(problems("Status: " + status), [], status)
            for third in ["", "## Context", "Status: superseded", "Status: withdrawn.", "Status: new.", "accepted."]:
                self.assertEqual(problems(third), [("doc/decisions/0001-first.md", 3)], third)


if __name__ == "__main__":
    unittest.main()
