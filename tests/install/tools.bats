#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The command lines of tools/: what they do not know they refuse before they do anything.

setup() { tools=$BATS_TEST_DIRNAME/../../tools; }

@test "tools/demo knows --short" {
  run -0 "$tools/demo" --help
  [[ $output == *"usage: tools/demo [--short]"*"--short  few images and steps"* ]]
  run -64 "$tools/demo" --shrt
  [ "$output" = "tools/demo: knows only --short, got '--shrt'" ]
}

@test "tools/check knows its stages" {
  run -0 "$tools/check" --help
  [[ $output == *"stages: build test debian13 cuda12 packages style asan tsan fuzz (default: all, in this order); test is unit, programs and cluster"*"--changed: "* ]]
  run -64 "$tools/check" debian14
  [ "$output" = "tools/check: unknown stage 'debian14': build, test, unit, programs, demo, cluster, cluster_few, cuda12, debian13, packages, style, asan, tsan or fuzz" ]
  run -64 "$tools/check" --fuzz-seconds
  run -64 "$tools/check" --minutes soon
  [ "$output" = "tools/check: --minutes needs a number of minutes" ]
}
