#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The command lines of tools/: what they do not know they refuse before they do anything.

bats_require_minimum_version 1.5.0

setup() { tools=$BATS_TEST_DIRNAME/../../tools; }

@test "tools/demo knows --short" {
  run -0 "$tools/demo" --help
  [[ $output == *"usage: tools/demo [--short]"*"--short  few images and steps"* ]]
  run -64 "$tools/demo" --shrt
  [ "$output" = "tools/demo: knows only --short, got '--shrt'" ]
}

@test "tools/wheel and tools/zig know what they take" {
  run -0 "$tools/wheel" --help
  [[ $output == *"usage: tools/wheel [--arch x86_64|aarch64|ppc64le]"* ]]
  run -64 "$tools/wheel" --ach
  [ "$output" = "tools/wheel: '--ach' is not understood: --arch ARCHITECTURE, ddlrun, ddlrun-train" ]
  run -64 "$tools/wheel" ddlrun --arch x86_64
  [ "$output" = "tools/wheel: '--arch' is not understood: --arch ARCHITECTURE, ddlrun, ddlrun-train" ]
  run -64 "$tools/wheel" --arch sparc
  [ "$output" = "tools/wheel: no wheel is made for 'sparc': x86_64, aarch64, ppc64le" ]
  run -64 "$tools/wheel" --arch aarch64 ddlrun ddlrun-train
  [ "$output" = "tools/wheel: no wheel of ddlrun-train is made for 'aarch64': x86_64" ]
  run -64 "$tools/zig" cc
  [[ $output == "usage: tools/zig"* ]]
  mkdir "$BATS_TEST_TMPDIR/bin"
  printf '#!/bin/sh\necho no network >&2\nexit 1\n' > "$BATS_TEST_TMPDIR/bin/python3"
  chmod +x "$BATS_TEST_TMPDIR/bin/python3"
  XDG_CACHE_HOME=$BATS_TEST_TMPDIR PATH=$BATS_TEST_TMPDIR/bin:$PATH run -69 "$tools/zig"
  [[ $output == "tools/zig: pip cannot get ziglang=="*": no network" ]]
  [ -z "$(ls "$BATS_TEST_TMPDIR/ddlrun")" ]
}

@test "tools/cross knows its processors and steps" {
  run -0 "$tools/cross" --help
  [[ $output == *"usage: tools/cross ppc64le|aarch64 [sysroot | build | test | ranks]"*"tools/cross ppc64le|aarch64 run COMMAND"* ]]
  run -64 "$tools/cross" riscv64 build
  [ "$output" = "tools/cross: for which processor? ppc64le or aarch64, not 'riscv64'" ]
  run -64 "$tools/cross" aarch64 build tests
  [ "$output" = "tools/cross: unknown step 'tests': sysroot, build, test, ranks or run COMMAND" ]
  run -64 "$tools/cross" ppc64le run
  [ "$output" = "tools/cross: run which command?" ]
  mkdir "$BATS_TEST_TMPDIR/bin"
  ln -s "$(command -v bash)" "$(command -v dirname)" "$BATS_TEST_TMPDIR/bin"
  PATH=$BATS_TEST_TMPDIR/bin run -69 "$tools/cross" aarch64
  [ "$output" = "tools/cross: aarch64-linux-gnu-g++ is missing: tools/bootstrap build cross" ]
  # Both have a preset, and the same processor in both places.
  for processor in "ppc64le power9" "aarch64 neoverse-n1"; do
    grep -q "\"name\": \"${processor% *}\", \"inherits\": \"cross\"" "$tools/../CMakePresets.json"
    grep -q "^  ${processor% *}).* cpu=${processor#* } " "$tools/cross"
    grep -qF "set(ddl_cpu ${processor#* })" "$tools/../cmake/cross.cmake"
  done
}

@test "tools/check knows its stages" {
  run -0 "$tools/check" --help
  [[ $output == *"stages: build test debian13 cuda12 packages wheel style tidy asan tsan fuzz (default: all, in this order); test is unit, programs"*"--changed: "* ]]
  run -64 "$tools/check" debian14
  [ "$output" = "tools/check: unknown stage 'debian14': build, test, unit, programs, demo, cluster, cluster_few, cuda12, debian13, packages, wheel, style, tidy, asan, tsan or fuzz" ]
  run -64 "$tools/check" --fuzz-seconds
  run -64 "$tools/check" --minutes soon
  [ "$output" = "tools/check: --minutes needs a number of minutes" ]
}
