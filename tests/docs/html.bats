#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tools/docs: the pages as HTML, with a search.

bats_require_minimum_version 1.5.0

setup() {
  cd "$BATS_TEST_DIRNAME/../.." || return
  command -v sphinx-build > /dev/null || skip "Sphinx is not installed: tools/bootstrap check"
}

# small_tree: the pages that tools/docs knows by name, in ./tree.
small_tree() {
  local page
  for page in README CHANGELOG CONTRIBUTING SECURITY doc/{user-guide,reference,performance,glossary,benchmarking,platforms,scaling} \
    doc/{administrators-guide,security,architecture,formats,decisions/README} doc/{user-guide,reference,reference/options,performance}/a \
    doc/decisions/0001-a {tests,tests/cluster,tests/faults,tests/fixtures/a,rankfile,packaging/container}/README; do
    mkdir -p "$(dirname "tree/$page")"
    echo "# $page" > "tree/$page.md"
  done
  mkdir tree/tools
  cp "$BATS_TEST_DIRNAME/../../tools/docs" tree/tools
  echo 'project(ddlrun VERSION 1.2.3 DESCRIPTION "x")' > tree/CMakeLists.txt
}

@test "every page is there, links lead to headings, and the search knows the words" {
  run tools/docs "$BATS_TEST_TMPDIR/html"
  echo "$output"
  [ "$status" -eq 0 ]
  [ "${lines[-1]}" = "$BATS_TEST_TMPDIR/html/index.html" ]
  cd "$BATS_TEST_TMPDIR/html"
  [ -s index.html ]
  [ -s doc/decisions/0040-rollback.html ]
  grep -q 'href="reference/exit-codes.html#exit-codes"' doc/reference.html
  grep -q 'id="exit-codes"' doc/reference/exit-codes.html
  grep -q rollback searchindex.js
  [ -z "$(find . -name '*.doctree' -o -name '*.md')" ]
}

@test "a link that leads nowhere is an error; what lies in the directory is not lost" {
  cd "$BATS_TEST_TMPDIR"
  small_tree
  run tree/tools/docs html
  echo "$output"
  [ "$status" -eq 0 ]
  cp -r html first
  run tree/tools/docs html # its own it replaces, by the same bytes
  [ "$status" -eq 0 ]
  diff -r first html
  echo '[x](glossary.md#nothing)' >> tree/doc/security.md
  run tree/tools/docs html
  echo "$output"
  [ "$status" -eq 1 ]
  [[ $output == "doc/security.md:2: "*"glossary.md#nothing"* ]]

  mkdir mine
  echo 1 > mine/file
  run -64 tree/tools/docs mine
  [[ $output == "tools/docs: $BATS_TEST_TMPDIR/mine has something else in it: remove it, or name another directory" ]]
  [ -s mine/file ]
}

@test "misuse is 64, no Sphinx 69" {
  run -64 tools/docs --html
  [[ $output == "tools/docs: knows no option, got '--html'; it takes the directory to write" ]]
  run -64 tools/docs a b
  [[ $output == "tools/docs: takes one directory, got a b" ]]
  run -0 tools/docs --help
  [[ $output == *"usage: tools/docs [DIRECTORY]"* ]]
  PATH=/usr/bin:/bin
  mkdir "$BATS_TEST_TMPDIR/bin"
  for tool in bash realpath dirname; do ln -s "$(command -v $tool)" "$BATS_TEST_TMPDIR/bin"; done
  PATH=$BATS_TEST_TMPDIR/bin run -69 tools/docs
  [[ $output == "tools/docs: there is no sphinx-build: apt-get install python3-myst-parser, or pip install myst-parser" ]]
}
