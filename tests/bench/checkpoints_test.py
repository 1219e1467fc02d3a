#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/checkpoints/cost with the ddltraind of the build directory DDLRUN_BUILD and the smallest network."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

COST = pathlib.Path(__file__).resolve().parents[2] / "bench/checkpoints/cost"
BUILD = pathlib.Path(os.environ.get("DDLRUN_BUILD", COST.parents[2] / "build/release"))
SMALL = ["--arch=resnet_tiny", "--batch_size=2", "--threads=1", "--every=5", "--checkpoints=2", "--rounds=1"]


def cost(*arguments, trainer=BUILD / "bin/ddltraind"):
    return subprocess.run([COST, *SMALL, f"--trainer={trainer}", *arguments], capture_output=True, text=True, check=False)


class Cost(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def made_up_trainer(self, script):
        trainer = pathlib.Path(self.directory.name, "trainer")
        trainer.write_text("#!/bin/sh\n" + script)
        trainer.chmod(0o755)
        return trainer

    def test_each_way_has_a_row(self):
        done = cost(f"--directory={self.directory.name}")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = re.findall(r"^\| (none|in the background|waited for) +\| +(\d+\.\d) +\| (\d+\.\d{3}) +\| -?\d+\.\d{3} +\|$",
                          done.stdout, re.MULTILINE)
        self.assertEqual([row[0] for row in rows], ["none", "in the background", "waited for"])
        self.assertEqual(rows[0][2], "1.000")
        self.assertTrue(all(float(row[1]) > 0 for row in rows), rows)
        self.assertEqual(os.listdir(self.directory.name), [])

    # 10 steps of 2 images: 1 s without checkpoints, 2 s with, 4 s where they are waited for.
    def test_what_is_printed_is_made_of_the_stamps(self):
        trainer = self.made_up_trainer("""
            seconds=1
            case "$*" in *checkpoint_in_background=on*) seconds=2 ;; *checkpoint_in_background=off*) seconds=4 ;; esac
            echo ":::NVLOGv0.2.3 resnet 100.000000000 (training_hooks.py:100) iteration: 10"
            echo ":::NVLOGv0.2.3 resnet 10$seconds.000000000 (training_hooks.py:100) iteration: 20"
            echo "... warning: ...: training waited 0.5 s for it (said once)" >&2
        """)
        done = cost("--at_least=0.5", trainer=trainer)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| none              | 20.0     | 1.000   | 0.000      |\n"
                      "| in the background | 10.0     | 0.500   | 0.500      |\n"
                      "| waited for        | 5.0      | 0.250   | 1.500      |\n", done.stdout)
        self.assertIn("first waits of 0.5", done.stdout)
        self.assertEqual(cost("--at_least=0.51", trainer=trainer).returncode, 1)

    def test_a_missing_program_is_named(self):
        done = cost(trainer="/nonexistent/ddltraind")
        self.assertEqual(done.returncode, 69)
        self.assertIn("/nonexistent/ddltraind: No such file or directory", done.stderr)

    def test_a_failing_program_is_named_with_what_it_says(self):
        done = cost("--batch_size=0")
        self.assertEqual(done.returncode, 69)
        self.assertIn("--batch_size", done.stderr)


if __name__ == "__main__":
    unittest.main()
