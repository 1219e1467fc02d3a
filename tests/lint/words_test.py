#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The linter of words finds each kind of old word, and passes what only looks like one."""

import unittest

from words import problems_of


class Words(unittest.TestCase):
    def test_lines_with_an_old_word(self):
        for line, word in [
            ("class MpirunSpawner {", "Spawner"),
            ("int told_to_stop = 0;", "told"),
            ("void MakeFolder();", "Folder"),
            ("constexpr int kMostNames = 3;", "kMost"),
            ("int most_ranks = 0;", "most_"),
            ("bool can_go_back();", "can_go_back"),
            ('Throw("the loss is no number");', "is no number"),
            ('Help("Folder for logs");', "Folder"),
            ('Log("going on from step 3");', "going on"),
        ]:
            with self.subTest(line=line):
                self.assertEqual([(number, problem.split("'")[1]) for number, problem in problems_of("\n" + line + "\n")],
                                 [(2, word)])

    def test_lines_without_one(self):
        for line in [
            '#include "launcher/spawn/spawner.h"',
            "// A spawner is told of folders.",
            "void AtLeast(int n);  // of gtest",
            "int almost = 1'000;",
            'Get("DDLRUN_SPAWNER");',
            "int surpassed = 0, space = 0;",
            'Log("ongoing, at least, at most");',
        ]:
            with self.subTest(line=line):
                self.assertEqual(list(problems_of(line + "\n")), [])


if __name__ == "__main__":
    unittest.main()
