#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/baselines/compare, with programs that only print a result."""

import os
import pathlib
import stat
import subprocess
import tempfile
import unittest

COMPARE = pathlib.Path(__file__).resolve().parents[2] / "bench/baselines/compare"


def printing(milliseconds):
    return f"echo 'median of 5 steps: 1.0 images/s, {milliseconds} ms (forward 1.0)'"


# As an interpreter: has torch, and its default layout is slower than channels_last.
PYTHON = f"""case "$*" in
*import*) ;;
*channels_last) {printing("1500.0")} ;;
*) {printing("1800.0")} ;;
esac"""


class Compare(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def program(self, name, script):
        path = pathlib.Path(self.directory.name, name)
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        os.chmod(path, stat.S_IRWXU)
        return path

    def compare(self, trainer, python, *more):
        return subprocess.run(
            [COMPARE, f"--trainer={self.program('trainer', trainer)}",
             f"--python={self.program('python', python)}", "--rounds=1", *more],
            capture_output=True, text=True, check=False)

    def test_ratio_is_to_the_better_layout(self):
        done = self.compare(printing("1000.0"), PYTHON)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("better of PyTorch (PyTorch, channels_last): 1.50", done.stdout)
        self.assertIn("1800.0 ms", done.stdout)

    def test_ratio_below_the_wanted_one_fails(self):
        self.assertEqual(self.compare(printing("1000.0"), PYTHON, "--at_least=1.6").returncode, 1)

    def test_missing_torch_names_the_packages(self):
        done = self.compare(printing("1000.0"), "exit 1")
        self.assertEqual(done.returncode, 69)
        self.assertIn("apt-get install python3-torch python3-torchvision", done.stderr)

    def test_failing_trainer_is_named_with_its_last_line(self):
        done = self.compare("echo 'no such option' >&2; exit 64", PYTHON)
        self.assertEqual(done.returncode, 69)
        self.assertIn("ddltraind gave no result (exit 64): no such option", done.stderr)


if __name__ == "__main__":
    unittest.main()
