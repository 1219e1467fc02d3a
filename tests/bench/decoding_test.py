#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""decoding_rate of the build directory DDLRUN_BUILD, on a small data set."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(os.environ.get("DDLRUN_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build/release"))
NO_TEST = 77


def decoding_rate(*arguments):
    return subprocess.run([BUILD / "bench/decoding_rate", *arguments], capture_output=True, text=True, check=False)


class DecodingRate(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def test_prints_images_per_second(self):
        data = pathlib.Path(self.directory.name, "data")
        synth = [BUILD / "bin/ddldata", "synth", "--images=24", "--validation_images=0", "--shards=2", data]
        subprocess.run(synth, check=True, stdout=subprocess.DEVNULL)
        done = decoding_rate(data, "2", "50", "32")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, re.compile(r"\A[1-9][\d.e+]* images/s\n\Z"))

    def test_a_folder_without_data_is_named(self):
        done = decoding_rate(self.directory.name, "2", "50", "32")
        self.assertEqual(done.returncode, 65)
        self.assertIn(self.directory.name, done.stderr)

    def test_a_missing_number_is_refused(self):
        done = decoding_rate(self.directory.name, "2")
        self.assertEqual(done.returncode, 64)
        self.assertIn("usage: decoding_rate DATA_DIR WORKERS IMAGES IMAGE_SIZE", done.stderr)


if __name__ == "__main__":
    if not (BUILD / "bench/decoding_rate").exists():
        print("skipped: built without DDLRUN_BENCH")
        sys.exit(NO_TEST)
    unittest.main()
