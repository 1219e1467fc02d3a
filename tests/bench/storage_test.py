#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/input/storage with the programs of the build directory DDLRUN_BUILD, on a small data set."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

STORAGE = pathlib.Path(__file__).resolve().parents[2] / "bench/input/storage"
BUILD = pathlib.Path(os.environ.get("DDLRUN_BUILD", STORAGE.parents[2] / "build/release"))
NO_TEST = 77


def storage(*arguments):
    return subprocess.run([STORAGE, *arguments], capture_output=True, text=True, check=False)


class Storage(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.data = pathlib.Path(self.directory.name, "data").resolve()
        synth = [BUILD / "bin/ddldata", "synth", "--images=24", "--validation_images=0", "--shards=2", self.data]
        subprocess.run(synth, check=True, stdout=subprocess.DEVNULL)

    def test_each_latency_has_a_row_and_reading_is_beside_dd(self):
        done = storage(f"--build={BUILD}", "--latencies=0,1", "--threads=2", "--batch_size=8", "--steps=2",
                       "--rounds=1", str(self.data))
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = re.findall(r"^\| (\S+) +\| +(\d+) +\| +(\d+\.\d+) +\|$", done.stdout, re.MULTILINE)
        self.assertEqual([row[0] for row in rows], ["0", "1", "dd", "reading"])
        self.assertEqual([rows[0][2], rows[2][2]], ["1.000", "1.000"])
        self.assertTrue(all(int(row[1]) > 0 for row in rows), rows)

    # The 12 headers of a file are read one after the other.
    def test_reads_of_the_folder_wait(self):
        slow = {"LD_PRELOAD": str(BUILD / "bench/slow_storage.so"), "SLOW_STORAGE_MS": "20",
                "SLOW_STORAGE_DIR": str(self.data)}
        start = time.monotonic()
        subprocess.run([BUILD / "bin/ddldata", "index", self.data, pathlib.Path(self.directory.name, "index")],
                       env={**os.environ, **slow}, check=True, stdout=subprocess.DEVNULL)
        self.assertGreater(time.monotonic() - start, 12 * 0.02)

    def test_a_folder_without_data_is_named(self):
        done = storage(f"--build={BUILD}", self.directory.name)
        self.assertEqual(done.returncode, 69)
        self.assertIn(f"{self.directory.name} has no file train-*; make some with: ddldata synth", done.stderr)

    def test_a_missing_program_is_named(self):
        done = storage("--build=/nonexistent", str(self.data))
        self.assertEqual(done.returncode, 69)
        self.assertIn("/nonexistent/bench/slow_storage.so is missing; build it first", done.stderr)

    def test_a_failing_program_is_named_with_what_it_says(self):
        done = storage(f"--build={BUILD}", "--threads=0", str(self.data))
        self.assertEqual(done.returncode, 69)
        self.assertIn("--threads=0", done.stderr)


if __name__ == "__main__":
    if not (BUILD / "bench/slow_storage.so").exists():
        print("skipped: built without DDLRUN_BENCH")
        sys.exit(NO_TEST)
    unittest.main()
