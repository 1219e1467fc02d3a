#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The command lines of tools/: what they do not know they refuse before they do anything.

# shellcheck disable=SC2154 # set by bats

setup() { tools=$BATS_TEST_DIRNAME/../../tools; }

@test "tools/demo knows --short" {
  run "$tools/demo" --help
  [ "$status" -eq 0 ]
  [[ $output == *"usage: tools/demo [--short]"*"--short  few images and steps"* ]]
  run "$tools/demo" --shrt
  [ "$status" -eq 64 ]
  [ "$output" = "tools/demo: knows only --short, got '--shrt'" ]
}

@test "tools/check knows its stages" {
  run "$tools/check" --help
  [ "$status" -eq 0 ]
  [[ $output == *"stages: build test debian13 cuda12 packages style asan tsan fuzz (default: all, in this order); test is unit, programs and cluster"*"--changed: "* ]]
  run "$tools/check" debian14
  [ "$status" -eq 64 ]
  [ "$output" = "tools/check: unknown stage 'debian14': build, test, unit, programs, demo, cluster, cluster_few, cuda12, debian13, packages, style, asan, tsan or fuzz" ]
  run "$tools/check" --fuzz-seconds
  [ "$status" -eq 64 ]
  run "$tools/check" --minutes soon
  [ "$status" -eq 64 ]
  [ "$output" = "tools/check: --minutes needs a number of minutes" ]
}
