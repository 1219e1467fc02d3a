#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""doc_commands.py and wrapped.py see what they are for."""

import pathlib
import unittest

from doc_commands import blocks_of, indented_commands, missing_line, pages, problems_of, unclosed_blocks
from wrapped import filled, is_too_long, paragraphs

ROOT = pathlib.Path(__file__).resolve().parents[2]


def problems(text):
    return [problem for block in blocks_of("page.md", text) for problem in problems_of(ROOT, block)]


class Blocks(unittest.TestCase):
    def test_a_command_without_a_place_is_a_problem(self):
        self.assertIn("no test runs", problems("```sh\nddlrun\n```\n")[0])
        self.assertEqual(problems("```sh local\nddlrun\n```\n"), [])

    def test_a_block_without_a_language_is_a_problem(self):
        self.assertIn("the language ''", problems("text\n```\nddlrun\n```\n")[0])
        self.assertIn("the language 'shh'", problems("```shh local\nddlrun\n```\n")[0])
        self.assertEqual(problems("```text\nout\n```\n"), [])

    def test_a_tool_is_run_by_what_is_named(self):
        self.assertEqual(problems("```sh tools\ntools/check    # all\n```\n"), [])
        self.assertIn("tools/gpu-check is run by nothing", problems("```sh tools\ntools/gpu-check bundle X\n```\n")[0])

    def test_a_block_in_a_list_loses_its_indentation_and_gets_its_output(self):
        (block,) = blocks_of("page.md", "1. x\n   ```sh local\n   ls\n     -l\n   ```\n\n   ```text output\n   a\n   ```\n")
        self.assertEqual((block.line, block.place, block.text, block.outputs), (2, "local", "ls\n  -l\n", ["a\n"]))

    def test_code_by_indentation_is_a_problem(self):
        self.assertEqual([number for number, _ in indented_commands("a.md", "x\n\n    ls\n")], [3])
        self.assertEqual(list(indented_commands("a.md", "- x\n    y\n")), [])

    def test_a_block_that_is_not_closed_is_a_problem(self):
        self.assertEqual([number for number, _ in unclosed_blocks("```sh local\nls\n\n```text output\na\n```\n")], [1])
        self.assertEqual([number for number, _ in unclosed_blocks("x\n```sh local\nls\n")], [2])
        self.assertEqual(list(unclosed_blocks("```\na\n```\n1. x\n   ```sh\n   ls\n   ```\n")), [])

    def test_every_page_has_blocks_that_are_run(self):
        readme = blocks_of("README.md", (ROOT / "README.md").read_text(encoding="utf-8"))
        self.assertLessEqual({"local", "mpi", "pytorch", "source", "slurm", "sbatch", "tools"}, {block.place for block in readme})

    def test_every_page_for_users_is_one_of_the_pages(self):
        found = pages(ROOT)
        for page in (ROOT / "doc").rglob("*.md"):
            if page.parent.name == "decisions":
                continue
            self.assertIn(page.relative_to(ROOT).as_posix(), found)
        self.assertIn("doc/reference/launching.md", found)


class Output(unittest.TestCase):
    OUTPUT = "start\nrank 0 of 2: loss 0.0123\n+ /usr/bin/srun -n 2 ./a.out x y\nend\n"

    def test_numbers_may_differ_and_words_may_not(self):
        self.assertIsNone(missing_line(["rank 1 of 4: loss 12.3\n"], self.OUTPUT))
        self.assertEqual(missing_line(["rank 1 of 4: gain 12.3\n"], self.OUTPUT), "rank 1 of 4: gain 12.3")

    def test_dots_stand_for_anything(self):
        self.assertIsNone(missing_line(["start\n...\n+ /usr/bin/srun ... ./a.out ...\n"], self.OUTPUT))
        self.assertIsNotNone(missing_line(["+ /usr/bin/srun ... ./b.out ...\n"], self.OUTPUT))
        self.assertIsNotNone(missing_line(["+ /usr/bin/srun\n"], self.OUTPUT))

    def test_the_order_counts(self):
        self.assertEqual(missing_line(["end\nstart\n"], self.OUTPUT), "start")

    def test_of_several_blocks_each_has_its_own_order(self):
        self.assertIsNone(missing_line(["end\n", "start\n"], self.OUTPUT))
        self.assertEqual(missing_line(["start\n", "no end\n"], self.OUTPUT), "no end")
        (block,) = blocks_of("page.md", "```sh local\nls\n```\n```text output\na\n```\n```text output\nb\n```\n")
        self.assertEqual(block.outputs, ["a\n", "b\n"])


class Lines(unittest.TestCase):
    def test_a_line_that_can_be_broken_is_too_long_past_120(self):
        self.assertFalse(is_too_long("x " * 60))
        self.assertTrue(is_too_long("x " * 60 + "y"))
        self.assertFalse(is_too_long("x" * 200))

    def test_tables_headings_and_code_are_no_paragraphs(self):
        lines = ["# a", "", "b", "c", "- d", "  e", "1. f", "", "| g |", "```sh local", "h", "```", "i"]
        self.assertEqual(list(paragraphs(lines)), [(2, 4), (4, 6), (6, 7), (12, 13)])

    def test_an_entry_of_a_list_goes_on_under_its_first_word(self):
        text = filled(["- " + "word " * 30, "  more"])
        self.assertEqual(text[0], "- " + " ".join(["word"] * 23))
        self.assertEqual(text[1], "  " + " ".join(["word"] * 7) + " more")


if __name__ == "__main__":
    unittest.main()
