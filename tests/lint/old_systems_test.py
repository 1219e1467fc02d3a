#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which files old_systems.py compiles, and that it tells what is too new."""

import json
import pathlib
import sys
import tempfile
import unittest

import old_systems


class Tree(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name) / "tree"
        self.libraries = pathlib.Path(folder.name) / "libraries"
        self.write(self.libraries / "vector", "")
        self.write(self.libraries / "sys/types.h", "")

    def write(self, path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def headers(self, text):
        self.write(self.root / "support/a.cc", text)
        return old_systems.Sources(self.root).headers_of("support/a.cc", [self.libraries])

    def test_a_file_with_standard_headers_is_compiled(self):
        self.assertEqual(self.headers("#include <vector>\n  # include <sys/types.h>\n"),
                         ({"support/a.cc"}, {"vector", "sys/types.h"}))

    def test_headers_of_ours_are_followed(self):
        self.write(self.root / "support/b.h", "#include <vector>\n")
        self.assertEqual(self.headers('#include "support/b.h"\n'), ({"support/a.cc", "support/b.h"}, {"vector"}))

    def test_a_file_that_needs_another_library_is_left_out_however_far_down(self):
        self.write(self.root / "support/b.h", "#include <hwloc.h>\n")
        self.assertIsNone(self.headers('#include "support/b.h"\n'))

    def test_a_file_that_needs_a_generated_header_is_left_out(self):
        self.assertIsNone(self.headers('#include "trainer/data/example.pb.h"\n'))

    def test_a_changed_header_counts_as_a_change(self):
        self.write(self.root / "support/b.h", "")
        sources = old_systems.Sources(self.root)
        before = sources.digest({"support/b.h"})
        self.write(self.root / "support/b.h", "int x;")
        self.assertNotEqual(sources.digest({"support/b.h"}), before)


class Compiler(unittest.TestCase):
    def test_what_glibc_2_28_lacks_is_refused(self):
        try:
            zig = old_systems.find_zig()
        except old_systems.Unavailable as reason:
            self.skipTest(str(reason))
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "support").mkdir()
            (root / "support/old.cc").write_text("#include <unistd.h>\nint a() { return getppid(); }\n", encoding="utf-8")
            (root / "support/x86.cc").write_text("#if defined(__SSE2__)\n#include <emmintrin.h>\n#endif\nint b() { return 0; }\n",
                                                 encoding="utf-8")
            (root / "support/new.cc").write_text(old_systems.TOO_NEW, encoding="utf-8")
            (root / "support/power.cc").write_text(f"#ifdef __powerpc__\n{old_systems.TOO_NEW}#endif\n", encoding="utf-8")
            together = {f"support/{name}.cc": "unity_0" for name in ("old", "x86", "new", "power")}
            # On POWER those alone that ask which processor it is.
            for target, place, files in zip(old_systems.TARGETS, ("new.cc:2:", "power.cc:3:"), (4, 2)):
                for joined in {}, together:
                    problems, count = old_systems.check_target(zig, target, old_systems.Sources(root), {}, joined, root, root)
                    self.assertEqual((len(problems), count), (1, files), problems)
                    self.assertIn(f"support/{place}", problems[0])
                    # What is well is known from then on, what is not is looked at again.
                    kept = json.loads((root / f"{target}.json").read_text(encoding="utf-8"))
                    self.assertEqual([len(good) for good in kept.values()], [files - 1])
                    (root / f"{target}.json").unlink()


class Macros(unittest.TestCase):
    def test_they_are_those_of_each_source_that_a_command_joins(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            joined = root / "build/unity_0_cxx.cxx"
            joined.parent.mkdir()
            joined.write_text(f'#include "{root}/a.cc"\n\n#include "{root}/b.cc"\n', encoding="utf-8")
            commands = [{"file": str(joined), "command": "c++ -DX=1 -c"}, {"file": f"{root}/c.cc", "command": "c++ -DY -O2"}]
            (root / "build/compile_commands.json").write_text(json.dumps(commands), encoding="utf-8")
            macros, together = old_systems.commands_of_build(root, root / "build")
        self.assertEqual(macros, {"a.cc": ["-DX=1"], "b.cc": ["-DX=1"], "c.cc": ["-DY"]})
        self.assertEqual(together, {"a.cc": str(joined), "b.cc": str(joined), "c.cc": f"{root}/c.cc"})


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=0))
