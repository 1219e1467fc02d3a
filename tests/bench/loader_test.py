#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/baselines/loader, with programs that only print a result."""

import os
import pathlib
import stat
import struct
import subprocess
import tempfile
import unittest

LOADER = pathlib.Path(__file__).resolve().parents[2] / "bench/baselines/loader"

DDLBENCH = """case "$*" in
*--version*) echo 1.2.3 ;;
*--threads=1*) echo '| 1       | 1000.0    |' ;;
esac"""
# As an interpreter: has DALI, whose images/s are those of 250 if it finds the JPEGs, and tf.data, which fails.
PYTHON = """case "$2 $*" in
DALI*--probe*) echo '{"version": "DALI 2"}' ;;
DALI*) [ "$(cat "$3"/files/*.jpg)" = "$EXPECTED" ] && tar xOf "$3/tars/00001.tar" 00000001.jpg | grep -qx 'jpeg 1 *' &&
  cat "$3"/records/train-* | grep -qa 'jpeg 8' && echo '{"version": "DALI 2", "images_per_second": 250.0}' ;;
tf.data*--probe*) echo '{"version": "tensorflow 3"}' ;;
tf.data*) echo 'first line' >&2; echo 'out of threads' >&2; exit 1 ;;
*) echo "ModuleNotFoundError: No module named 'ffcv'" >&2; exit 1 ;;
esac"""


def field(number, value):
    assert len(value) < 128
    return bytes([number << 3 | 2, len(value)]) + value


def record(jpeg):
    def feature(name, values):
        return field(1, field(1, name) + field(2, values))

    label = feature(b"image/class/label", field(3, field(1, b"\x07")))
    example = field(1, label + feature(b"image/encoded", field(1, field(1, jpeg))))
    return struct.pack("<QI", len(example), 0) + example + b"\0" * 4


class Loader(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.path = pathlib.Path(self.directory.name)
        (self.path / "data").mkdir()
        jpegs = [b"jpeg %d\n" % number for number in range(9)]
        (self.path / "data/train-0-of-2").write_bytes(b"".join(record(jpeg) for jpeg in jpegs[:4]))
        (self.path / "data/train-1-of-2").write_bytes(b"".join(record(jpeg) for jpeg in jpegs[4:]))
        self.environment = {**os.environ, "EXPECTED": b"".join(jpegs).decode().rstrip("\n")}

    def program(self, name, script):
        path = self.path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        os.chmod(path, stat.S_IRWXU)
        return path

    def loader(self, peers, *more, data="data"):
        self.program("bin/ddlbench", DDLBENCH)
        self.program("bench/decoding_rate", "echo 1100 images/s")
        return subprocess.run(
            [LOADER, f"--build={self.path}", f"--python={self.program('python', PYTHON)}", f"--data={self.path / data}",
             f"--peers={peers}", "--cores=1", "--rounds=2", *more],
            env=self.environment, capture_output=True, text=True, check=False)

    def test_the_ratio_is_ours_over_that_of_each_peer_which_has_the_same_images(self):
        done = self.loader("DALI")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("9 JPEGs of 0 kB in the mean, 224 x 224, batch 64, cores: 1; medians of 2 rounds", done.stdout)
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines() if line.startswith("|")]
        self.assertEqual(rows[2:], [["ddlbench loader", "1.2.3", "1000", "1000", "1.00"],
                                    ["bare loop", "1.2.3", "1100", "1100", "0.91"],
                                    ["DALI", "DALI 2", "250", "250", "4.00"]])

    def test_a_peer_that_is_not_there_is_named_with_what_installs_it(self):
        done = self.loader("FFCV")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("left out: FFCV (ModuleNotFoundError: No module named 'ffcv'); pip install ffcv", done.stdout)

    def test_a_peer_that_fails_is_named_with_its_last_line(self):
        done = self.loader("tf.data")
        self.assertEqual(done.returncode, 69)
        self.assertIn("failed: out of threads", done.stderr)

    def test_a_peer_that_nobody_knows_is_refused(self):
        done = self.loader("DALI,mxnet")
        self.assertEqual(done.returncode, 2)
        self.assertIn("'mxnet' is none of torchvision,", done.stderr)

    def test_a_folder_without_data_is_named(self):
        done = self.loader("DALI", data="bin")
        self.assertEqual(done.returncode, 69)
        self.assertIn("has no file train-*; make some with: ddldata synth", done.stderr)

    def test_too_few_images_are_named(self):
        done = self.loader("DALI", "--images=3")
        self.assertEqual(done.returncode, 69)
        self.assertIn("has 3 images; 8 at least are needed", done.stderr)


if __name__ == "__main__":
    unittest.main()
