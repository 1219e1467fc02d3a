#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/nccl-one-architecture on a library that is made here, with code of several GPUs in it."""

import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).parents[2] / "tools" / "nccl-one-architecture"
LIBRARIES = sys.argv[1:]  # NCCL's, where there is one

SOURCE = """
int ncclGetVersion(int* version) { *version = 23007; return 0; }
__asm__(".section .nv_fatbin,\\"a\\"\\n.balign 8\\n.incbin \\"code\\"\\n"
        ".section __nv_relfatbin,\\"a\\"\\n.incbin \\"link\\"\\n.text\\n");
"""

MACHINE_CODE, PTX = 2, 1


def entry(kind, capability, code, header=64):
    text = struct.pack("<HHIQ", kind, 0x101, header, len(code)).ljust(28, b"\0")
    return (text + struct.pack("<I", capability)).ljust(header, b"\0") + code


def container(*all_entries):
    text = b"".join(all_entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(text)) + text


CODE_80, CODE_90, CODE_100 = b"eighty.." * 5, b"ninety.." * 7, b"hundred." * 9
SEVERAL = container(entry(MACHINE_CODE, 75, b"seventy5"), entry(MACHINE_CODE, 80, CODE_80),
                    entry(MACHINE_CODE, 90, CODE_90, header=112),
                    entry(MACHINE_CODE, 100, CODE_100), entry(PTX, 100, b"text of "))
LAST_ALONE = container(entry(MACHINE_CODE, 100, CODE_100 * 2))


class OneArchitecture(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def make(self, code, source=SOURCE):
        (self.directory / "code").write_bytes(code)
        (self.directory / "link").write_bytes(b"for nvlink")
        (self.directory / "nccl.c").write_text(source, encoding="utf-8")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", "libnccl.so", "nccl.c"], cwd=self.directory, check=True)

    def run_tool(self, *arguments):
        return subprocess.run([TOOL, *arguments], cwd=self.directory, capture_output=True, text=True, check=False)

    def cut(self, capability):
        result = self.run_tool("libnccl.so", "out.so", capability)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout, (self.directory / "out.so").read_bytes()

    def assert_refused(self, status, text, *arguments):
        result = self.run_tool(*arguments)
        self.assertEqual((result.returncode, result.stderr.strip()), (status, "nccl-one-architecture: " + text))

    def test_the_code_of_one_gpu_is_left_and_the_library_still_loads(self):
        self.make(SEVERAL + SEVERAL)
        said, data = self.cut("90")
        self.assertEqual(said, "NCCL 2.30.7, code for 90 of 75, 80, 90, 100: out.so\n")
        left = container(entry(MACHINE_CODE, 90, CODE_90, header=112))
        self.assertIn(left.ljust(len(SEVERAL), b"\0") * 2, data)
        for cut in (b"seventy5", b"eighty..", b"hundred.", b"text of ", b"for nvlink"):
            self.assertNotIn(cut, data)
        self.assertEqual(len(data), (self.directory / "libnccl.so").stat().st_size)

    def test_code_of_a_smaller_one_with_the_same_first_digit_is_taken(self):
        self.make(SEVERAL)
        said, data = self.cut("86")
        self.assertEqual(said, "NCCL 2.30.7, code for 80 of 75, 80, 90, 100: out.so\n")
        self.assertIn(container(entry(MACHINE_CODE, 80, CODE_80)), data)

    def test_what_has_nothing_for_it_stays_as_it_is(self):
        self.make(LAST_ALONE + SEVERAL)
        _, data = self.cut("90")
        self.assertIn(LAST_ALONE + container(entry(MACHINE_CODE, 90, CODE_90, header=112)), data)

    def test_refusals(self):
        self.make(SEVERAL)
        self.assert_refused(65, "libnccl.so has no code that compute capability 70 runs, only for 75, 80, 90, 100",
                            "libnccl.so", "out.so", "70")
        self.assert_refused(65, "cannot read none.so: No such file or directory", "none.so", "out.so", "90")
        self.assert_refused(65, "nccl.c is no 64-bit library of Linux", "nccl.c", "out.so", "90")
        self.assert_refused(64, "libnccl.so is there already; give another name", "libnccl.so", "libnccl.so", "90")
        self.assert_refused(71, "cannot write no/out.so: No such file or directory", "libnccl.so", "no/out.so", "90")
        for arguments in ([], ["libnccl.so", "out.so"], ["libnccl.so", "out.so", "sm_90"]):
            result = self.run_tool(*arguments)
            self.assertEqual(result.returncode, 64)
            self.assertIn("usage: tools/nccl-one-architecture LIBNCCL.SO OUT ARCH", result.stderr)

    def test_code_in_another_form_is_refused(self):
        for damage in (b"\1" + SEVERAL[1:], SEVERAL[:8] + b"\xff\xff" + SEVERAL[10:], SEVERAL[:20] + b"\0" + SEVERAL[21:]):
            self.make(damage)
            result = self.run_tool("libnccl.so", "out.so", "90")
            self.assertEqual(result.returncode, 65)
            self.assertRegex(result.stderr, "libnccl.so has something at byte [0-9]+ that is no code as nvcc writes it")

    def test_a_library_that_is_not_nccl_leaves_nothing(self):
        self.make(SEVERAL, SOURCE.replace("ncclGetVersion", "another"))
        result = self.run_tool("libnccl.so", "out.so", "90")
        self.assertEqual(result.returncode, 69)
        self.assertIn("what is left cannot be loaded: ", result.stderr)
        self.assertFalse((self.directory / "out.so").exists())

    @unittest.skipUnless(LIBRARIES, "no NCCL is installed")
    def test_nccl_itself(self):
        result = self.run_tool(LIBRARIES[0], "out.so", "90")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"^NCCL 2\.\d+\.\d+, code for 90 of .*, .*: out\.so$")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
