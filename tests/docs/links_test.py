#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""links.py sees what it is for."""

import pathlib
import tempfile
import unittest

from links import LONGEST_REFERENCE, anchor_of, contents_problems, headings, index_problems, links, problems_of

LONG = "\n".join(["text"] * 100)


class Headings(unittest.TestCase):
    def test_an_anchor_is_what_github_makes_of_it(self):
        self.assertEqual(anchor_of("RHEL 8 and POWER9"), "rhel-8-and-power9")
        self.assertEqual(anchor_of("Coming from IBM's `ddlrun`"), "coming-from-ibms-ddlrun")
        self.assertEqual(anchor_of("What is on/off, and why?"), "what-is-onoff-and-why")
        self.assertEqual(anchor_of("bede-mpirun and MPI_Init"), "bede-mpirun-and-mpi_init")
        self.assertEqual(anchor_of("See [this](https://x.org/a)"), "see-this")

    def test_the_second_of_a_name_has_a_number(self):
        self.assertEqual([heading.anchor for heading in headings("# A\n## B\n### B\n## B\n")], ["a", "b", "b-1", "b-2"])

    def test_comments_of_code_are_no_headings(self):
        self.assertEqual([(heading.line, heading.level) for heading in headings("```sh\n# no\n```\n## yes\n")], [(4, 2)])


class Links(unittest.TestCase):
    def test_a_link_may_be_broken_by_the_end_of_a_line(self):
        self.assertEqual(list(links("a\n[b\nc](d.md#e), [f [g]](h)\n")), [(2, "d.md#e"), (3, "h")])

    def test_code_has_no_links(self):
        self.assertEqual(list(links("`[a](b)` ``[c`](d)``\n```\n[e](f)\n```\n[`g`](h)\n")), [(5, "h")])

    def test_an_open_mark_of_code_does_not_hide_the_next_link(self):
        self.assertEqual(list(links("a ` b [c](d) e\n\nf ` g\n")), [(1, "d")])


class Pages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name, "tree")
        (self.root / "doc" / "decisions").mkdir(parents=True)
        self.write("README.md", "# Top\n## Install it\n")

    def write(self, name, text):
        (self.root / name).write_text(text, encoding="utf-8")

    def problems(self, name, text):
        self.write(name, text)
        return [f"{line}: {problem}" for line, problem in problems_of(self.root, self.root / name)]

    def test_files_folders_headings_and_other_places_are_found(self):
        self.assertEqual(self.problems("doc/a.md", "# A\n[1](../README.md#install-it) [2](decisions) [3](#a) [4](https://x.org/#y)\n"), [])

    def test_a_path_of_the_sources_is_there_with_or_without_its_extension(self):
        (self.root / "trainer").mkdir()
        self.write("trainer/box.h", "")
        self.assertEqual(self.problems("doc/a.md", "# A\n`trainer/box` `trainer/box.h` `trainer` `train/x`\n"), [])
        self.assertEqual(self.problems("doc/a.md", "# A\n`trainer/bo` `launcher/x.h`\n"),
                         ["2: `trainer/bo`: there is no such file or directory", "2: `launcher/x.h`: there is no such file or directory"])

    def test_a_file_or_heading_that_is_not_there_is_a_mistake(self):
        self.assertIn("2: b.md: there is no b.md", self.problems("doc/a.md", "# A\n[1](b.md)\n")[0])
        self.assertIn("2: #b: no heading is '#b'", self.problems("doc/a.md", "# A\n[1](#b)\n")[0])
        self.assertIn("no heading is '#Install-it'", self.problems("doc/a.md", "[1](../README.md#Install-it)\n")[0])
        self.assertIn("is no page", self.problems("doc/a.md", "[1](decisions#b)\n")[0])

    def test_a_file_outside_of_the_tree_is_none_of_it(self):
        (self.root.parent / "outside.md").write_text("x", encoding="utf-8")
        self.assertIn("there is no", self.problems("doc/a.md", "[1](../../outside.md)\n")[0])

    def test_only_long_pages_of_doc_need_contents(self):
        text = "# A\n## B\n" + LONG
        self.assertIn("no table of contents", self.problems("doc/a.md", text)[0])
        self.assertIn("no table of contents", self.problems("doc/decisions/a.md", text)[0])
        self.assertEqual(self.problems("a.md", text), [])


class Index(unittest.TestCase):
    def problems(self, index, **pages):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name, "doc", "reference")
            folder.mkdir(parents=True)
            pathlib.Path(name, "doc", "reference.md").write_text(index, encoding="utf-8")
            for page, text in pages.items():
                (folder / f"{page}.md").write_text(text, encoding="utf-8")
            return [f"{page.name}:{line}: {problem}" for page, line, problem in index_problems(pathlib.Path(name))]

    def test_it_leads_to_every_heading_of_the_second_level(self):
        page = "# A\n## B\n### C\n## D e\n"
        self.assertEqual(self.problems("[b](reference/a.md#b) [d](reference/a.md#d-e)\n", a=page), [])
        self.assertEqual(self.problems("[b](reference/a.md#b) [a](reference/a.md)\n", a=page),
                         ["a.md:4: doc/reference.md does not lead to reference/a.md#d-e"])

    def test_it_leads_to_a_page_without_such_headings(self):
        self.assertEqual(self.problems("[a](reference/a.md)\n", a="# A\n"), [])
        self.assertEqual(self.problems("# Index\n", a="# A\n"), ["a.md:1: doc/reference.md does not lead to this page"])

    def test_a_page_of_the_reference_has_300_lines_at_most(self):
        self.assertEqual(LONGEST_REFERENCE, 300)
        self.assertEqual(self.problems("[a](reference/a.md)\n", a="x\n" * 300), [])
        self.assertIn("301 lines", self.problems("[a](reference/a.md)\n", a="x\n" * 301)[0])


class Contents(unittest.TestCase):
    def problems(self, entries, sections="## B c\n### D\n## `E`\n"):
        return [problem for _, problem in contents_problems(f"# A\n{entries}\n{sections}{LONG}")]

    def test_it_names_exactly_the_second_level(self):
        self.assertEqual(self.problems("- [B c](#b-c)\n- [`E`](#e)\n"), [])
        self.assertIn("has no [`E`](#e)", self.problems("- [B c](#b-c)\n")[0])
        self.assertIn("has [D](#d)", self.problems("- [B c](#b-c)\n  - [D](#d)\n- [`E`](#e)\n")[0])
        self.assertIn("has [B](#b-c)", self.problems("- [B](#b-c)\n- [`E`](#e)\n")[0])
        self.assertIn("has [B c](#b)", self.problems("- [B c](#b)\n- [`E`](#e)\n")[0])

    def test_its_order_is_that_of_the_headings(self):
        self.assertIn("order", self.problems("- [`E`](#e)\n- [B c](#b-c)\n")[0])
        self.assertIn("twice", self.problems("- [B c](#b-c)\n- [B c](#b-c)\n- [`E`](#e)\n")[0])

    def test_a_list_behind_the_first_heading_is_none(self):
        self.assertIn("no table of contents", self.problems("", "## B c\n- [B c](#b-c)\n- [D](#d)\n## D\n")[0])

    def test_a_hundred_lines_need_none(self):
        self.assertEqual(list(contents_problems("## A\n" + "x\n" * 99)), [])
        self.assertNotEqual(list(contents_problems("## A\n" + "x\n" * 100)), [])


if __name__ == "__main__":
    unittest.main()
