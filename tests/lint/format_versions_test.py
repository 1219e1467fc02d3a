#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of format_versions.py: in small trees."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import format_versions

ROWS = """| format | where | number | set in | a newer one |
|---|---|---|---|---|
| box | `box`, first line | 1 | `kBoxFormat`, trainer/box.h | refused |
| scans | `scan-*` | 2 | `ddltraind scan 2`, trainer/scan.cc | none |
"""
SOURCES = {"trainer/box.h": "inline constexpr int kBoxFormat = 1;\n",
           "trainer/scan.cc": '// "ddltraind scan 1\\n" was before\n'
                              'constexpr std::string_view kFirst = "ddltraind scan 2\\n";\n'}


class FormatVersionsTest(unittest.TestCase):
    def problems(self, sources, rows=ROWS):
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            for path, text in {**sources, format_versions.PAGE: rows}.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text, encoding="utf-8")
            return list(format_versions.problems(root))

    def test_a_table_that_is_true(self):
        self.assertEqual(self.problems(SOURCES), [])

    def test_a_number_that_was_raised(self):
        raised = {**SOURCES, "trainer/box.h": "inline constexpr int kBoxFormat = 2;\n"}
        self.assertEqual(self.problems(raised), ["trainer/box.h: kBoxFormat is 2, and 1 in the table of doc/formats.md"])

    def test_a_first_line_that_was_raised(self):
        raised = {**SOURCES, "trainer/scan.cc": 'auto first = "ddltraind scan 3\\n";\n'}
        self.assertEqual(self.problems(raised), [
            "trainer/scan.cc: ddltraind scan 3 (3) is not in the table of doc/formats.md",
            "doc/formats.md: ddltraind scan 2 is not in trainer/scan.cc"])

    def test_a_new_format(self):
        new = {**SOURCES, "ddlctl/talk.h": "constexpr int kTalkProtocol = 1;\n"}
        self.assertEqual(self.problems(new), ["ddlctl/talk.h: kTalkProtocol (1) is not in the table of doc/formats.md"])

    def test_the_table_of_this_tree_has_all_that_is_found(self):
        root = pathlib.Path(__file__).parents[2]
        self.assertGreaterEqual(len(format_versions.numbers_of_page(root)), 8)
        self.assertEqual(format_versions.numbers_of_page(root), format_versions.numbers_of_sources(root))


if __name__ == "__main__":
    unittest.main()
