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
  [ "$output" = "tools/wheel: '--ach' is not understood: --arch ARCHITECTURE, ddlrun, ddlrun-train, ddlrun-train-cuda13" ]
  run -64 "$tools/wheel" ddlrun --arch x86_64
  [ "$output" = "tools/wheel: '--arch' is not understood: --arch ARCHITECTURE, ddlrun, ddlrun-train, ddlrun-train-cuda13" ]
  run -64 "$tools/wheel" --arch sparc
  [ "$output" = "tools/wheel: no wheel is made for 'sparc': x86_64, aarch64, ppc64le" ]
  run -64 "$tools/wheel" --arch aarch64 ddlrun ddlrun-train
  [ "$output" = "tools/wheel: no wheel of ddlrun-train is made for 'aarch64': x86_64" ]
  run -64 "$tools/wheel" --arch ppc64le ddlrun-train-cuda13
  [ "$output" = "tools/wheel: no wheel of ddlrun-train-cuda13 is made for 'ppc64le': x86_64" ]
  run -64 "$tools/zig" cc
  [[ $output == "usage: tools/zig"* ]]
  mkdir "$BATS_TEST_TMPDIR/bin"
  printf '#!/bin/sh\necho no network >&2\nexit 1\n' > "$BATS_TEST_TMPDIR/bin/python3"
  chmod +x "$BATS_TEST_TMPDIR/bin/python3"
  XDG_CACHE_HOME=$BATS_TEST_TMPDIR PATH=$BATS_TEST_TMPDIR/bin:$PATH run -69 "$tools/zig"
  [[ $output == "tools/zig: pip cannot get ziglang=="*": no network" ]]
  [ -z "$(ls "$BATS_TEST_TMPDIR/ddlrun")" ]
}

@test "libraries of wheels are compiled anew when a flag, a source or the compiler has changed" {
  key_of() { # COPY [ZIG]: of the trainer's
    python3 -Bc "import sys, pathlib; sys.path.insert(0, sys.argv[1]); import libraries
print(libraries.key(libraries.TARGETS['ppc64le'], pathlib.Path(sys.argv[2]), libraries.OF_TRAINER))" "$1" "${2:-/zig}"
  }
  sources=$tools/../packaging/wheel
  before=$(key_of "$sources")
  [ ${#before} -eq 12 ]
  [ "$(key_of "$sources" /another/zig)" != "$before" ]
  for change in 's/CFLAGS=-O2/CFLAGS=-O1/' 's/MAKE_POSITION_INDEPENDENT_CODE=ON/MAKE_POSITION_INDEPENDENT_CODE=OFF/' 's/-fmacro-prefix-map/-ffile-prefix-map/' \
    's/"-O2", "-fPIC", "-Iinclude"/"-O1", "-fPIC", "-Iinclude"/' 's/"-O2", "-fPIC", "-mfloat128"/"-O1", "-fPIC", "-mfloat128"/' \
    's/cc -g0/cc/' 's/CMAKE_BUILD_TYPE=Release/CMAKE_BUILD_TYPE=Debug/' \
    's/ONEDNN_VERBOSE=ON/ONEDNN_VERBOSE=OFF/' 's/-mlong-double-64/-mlong-double-128/' 's/strtod_l(text/strtod(text/' \
    's/Cflags: -I/Cflags: -isystem /' 's/file.unlink/file.chmod/' 's/"licences" . name/"licences" \/ file/'; do
    rm -rf "$BATS_TEST_TMPDIR/copy"
    cp -r "$sources" "$BATS_TEST_TMPDIR/copy"
    sed -i "$change" "$BATS_TEST_TMPDIR"/copy/*
    ! diff -rq "$sources" "$BATS_TEST_TMPDIR/copy" > /dev/null || { echo "nothing to change: $change"; return 1; }
    [ "$(key_of "$BATS_TEST_TMPDIR/copy")" != "$before" ] || { echo "the same key with $change"; return 1; }
  done
  # What fetches them does not change them.
  rm -rf "$BATS_TEST_TMPDIR/copy"
  cp -r "$sources" "$BATS_TEST_TMPDIR/copy"
  sed -i 's/timeout=60/timeout=90/' "$BATS_TEST_TMPDIR"/copy/libraries.py
  [ "$(key_of "$BATS_TEST_TMPDIR/copy")" = "$before" ]
}

@test "why there is no wheel of the module for CUDA is what CMake has said" {
  why() { # LINE: of CMake
    printf '%s\n' "-- MPI: ON" "$1" "-- Configuring done" > "$BATS_TEST_TMPDIR/log"
    python3 -Bc "import sys, pathlib; sys.path.insert(0, sys.argv[1]); import backend
print(backend.cuda_left_out(pathlib.Path(sys.argv[2])))" "$tools/../packaging/wheel" "$BATS_TEST_TMPDIR/log"
  }
  [ "$(why '-- CUDA: no cuDNN (a directory); the cuda back end is left out')" = "CUDA: no cuDNN (a directory)" ]
  [ "$(why '-- NCCL 2.18 or later: not found (libnccl-dev); GPUs sum gradients')" = "NCCL 2.18 or later: not found" ]
  [ -z "$(why '--   NCCL, NVTX            ON (2.28.9), OFF')" ]
  # These are its words.
  grep -qF 'message(STATUS "CUDA: ${DDLRUN_CUDA_MISSING}; the cuda back end is left out")' "$tools/../cmake/cuda.cmake"
  grep -qF 'message(STATUS "NCCL 2.18 or later: not found (' "$tools/../cmake/cuda.cmake"
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
  [[ $output == *"stages: build test debian13 cuda12 packages wheel wheel_train style tidy asan tsan fuzz (default: all, in this order); test is unit,"*"--changed: "* ]]
  run -64 "$tools/check" debian14
  [ "$output" = "tools/check: unknown stage 'debian14': build, test, unit, programs, demo, cluster, cluster_few, cuda12, debian13, packages, wheel, wheel_train, style, tidy, asan, tsan or fuzz" ]
  run -64 "$tools/check" --fuzz-seconds
  run -64 "$tools/check" --minutes soon
  [ "$output" = "tools/check: --minutes needs a number of minutes" ]
}
