#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The manual pages, read by what shows them.

bats_require_minimum_version 1.5.0

setup() {
  pages=$DDLRUN_BUILD/manual/man1
  [ -e "$pages/ddlrun.1" ] || skip "a build with sanitizers, or a cross build without an emulator, makes none"
}

@test "man renders every page without a warning" {
  command -v man > /dev/null || skip "man is not installed"
  for page in "$pages"/*.1; do
    GROFF_NO_SGR=1 run -0 --separate-stderr man --warnings -E UTF-8 -l -Tutf8 "$page"
    [ -z "$stderr" ] || { echo "$page: $stderr"; return 1; }
    for heading in NAME SYNOPSIS DESCRIPTION OPTIONS 'EXIT STATUS' 'SEE ALSO'; do
      grep -q "^$heading$" <<< "$(col -b <<< "$output")" || { echo "$page has no $heading"; return 1; }
    done
  done
}

@test "mandoc has nothing to say" {
  command -v mandoc > /dev/null || skip "mandoc is not installed"
  for page in "$pages"/*.1; do
    run mandoc -Tlint "$page"
    [ -z "$output" ]
  done
}

@test "whatis knows what each page is about" {
  command -v lexgrog > /dev/null || skip "lexgrog is not installed"
  run lexgrog "$pages/bede-ddlrun.1"
  [[ $output == *'bede-ddlrun - start one rank of a program per GPU over all nodes of a job"'* ]]
}

@test "every option of --help is on the page" {
  for program in ddlrun bede-mpirun ddltraind ddlctl ddldata ddlbench ddl-rankfile; do
    [ -x "$DDLRUN_BUILD/bin/$program" ] || continue
    for option in $("$DDLRUN_BUILD/bin/$program" --help | grep -oE '^  (-[A-Za-z], ?)?--?[a-z0-9_-]+' | grep -oE -- '--?[A-Za-z0-9_-]+$'); do
      grep -qF -- "\\fB${option//-/\\-}\\fR" "$pages/$program.1" || { echo "$program $option"; return 1; }
    done
  done
}

@test "--help and the page of every program name the index of the reference" {
  local index=doc/reference.md
  [ -e "$BATS_TEST_DIRNAME/../../$index" ]
  for program in ddlrun bede-mpirun ddltraind ddlctl ddldata ddlbench ddl-rankfile; do
    grep -qF "$index" "$pages/$program.1" || { echo "the page of $program"; return 1; }
    [ -x "$DDLRUN_BUILD/bin/$program" ] || continue
    [ "$("$DDLRUN_BUILD/bin/$program" --help | grep -cF "$index")" -eq 1 ] || { echo "$program --help"; return 1; }
  done
}

@test "doc/reference/options has what the option tables say" {
  diff -r "$DDLRUN_BUILD/manual/options" doc/reference/options ||
    { echo "type: cp $DDLRUN_BUILD/manual/options/*.md doc/reference/options"; return 1; }
}
