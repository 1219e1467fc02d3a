#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What CMake says of a build before there is one, and what it leaves out.

bats_require_minimum_version 1.5.0

setup() {
  directory=$BATS_TEST_TMPDIR/build
}

# configure PRESET [OPTION ...]: into a directory of its own, without what takes long to find.
configure() {
  local preset=$1
  shift
  run cmake --preset "$preset" -S "$BATS_TEST_DIRNAME/../.." -B "$directory" -D DDLRUN_TESTS=OFF -D DDLRUN_BENCH=OFF -D DDLRUN_WITH_CUDA=OFF \
    -D DDLRUN_WITH_MPI=OFF -D CMAKE_UNITY_BUILD=OFF "$@"
  echo "$output"
  [ "$status" -eq 0 ]
}

# oneDNN as far as CMake looks at it: onednn_headers VERSION [RUNTIME]
onednn_headers() {
  local headers=$BATS_TEST_TMPDIR/include/oneapi/dnnl
  mkdir -p "$headers"
  touch "$headers/dnnl.hpp"
  printf '#define DNNL_VERSION_MAJOR %s\n#define DNNL_VERSION_MINOR %s\n#define DNNL_VERSION_PATCH %s\n' "${1%%.*}" "$(cut -d. -f2 <<< "$1")" "${1##*.}" \
    > "$headers/dnnl_version.h"
  printf '#define DNNL_CPU_RUNTIME DNNL_RUNTIME_%s\n' "${2-OMP}" > "$headers/dnnl_config.h"
  touch "$BATS_TEST_TMPDIR/libdnnl.so"
  found=(-D "ONEDNN_INCLUDE_DIR=$BATS_TEST_TMPDIR/include" -D "ONEDNN_LIBRARY=$BATS_TEST_TMPDIR/libdnnl.so")
}

has_onednn() { grep -q '^ONEDNN_LIBRARY:FILEPATH=.*/' "$DDLRUN_BUILD/CMakeCache.txt" && grep -q 'trainer_cpu' "$DDLRUN_BUILD/build.ninja"; }

@test "a warning stops a contributor and nobody who installs" {
  configure release
  grep -q -- '-Wextra' "$directory/compile_commands.json"
  run ! grep -- '-Werror' "$directory/compile_commands.json"
  rm -rf "$directory"
  configure contributor
  ours=$(grep -c '"command"' "$directory/compile_commands.json")
  [ "$(grep -c -- ' -Werror ' "$directory/compile_commands.json")" -eq "$ours" ]
  # The preset of an installer in the same directory rebuilds nothing.
  cp "$directory/compile_commands.json" "$BATS_TEST_TMPDIR/before"
  configure release
  cmp "$directory/compile_commands.json" "$BATS_TEST_TMPDIR/before"
}

@test "the table names the back ends that a program will have" {
  has_onednn || skip "no oneDNN here"
  configure release
  [[ $output =~ "back ends             reference, cpu (oneDNN "[23]"."[0-9]+"."[0-9]+")"$'\n' ]]
  [[ $output == *"back end left out     cuda: switched off"* ]]
  grep -q trainer/backend/cpu/onednn.cc "$directory/compile_commands.json"
}

@test "the table says why a back end is left out" {
  configure release -D DDLRUN_WITH_ONEDNN=OFF
  [[ $output == *"back ends             reference"$'\n'* ]]
  [[ $output == *"back end left out     cpu: switched off"* ]]
  run ! grep trainer/backend/cpu/ "$directory/compile_commands.json"
}

@test "oneDNN of a version that does not fit is left out, and said" {
  onednn_headers 2.5.4
  configure release "${found[@]}"
  [[ $output == *"back ends             reference"$'\n'* ]]
  [[ $output == *"back end left out     cpu: oneDNN 2.5.4 in $BATS_TEST_TMPDIR/include/oneapi/dnnl is older than 2.6"* ]]
  onednn_headers 4.0.0
  configure release "${found[@]}"
  [[ $output == *"back end left out     cpu: oneDNN 4.0.0 in $BATS_TEST_TMPDIR/include/oneapi/dnnl is newer than 3.x"* ]]
  [[ $output == *"oneDNN: oneDNN 4.0.0"*"the cpu back end is left out, the reference back end remains"* ]]
}

@test "oneDNN that is not for OpenMP, or does not link, is left out, and said" {
  onednn_headers 3.7.2 TBB
  configure release "${found[@]}"
  [[ $output == *"back end left out     cpu: oneDNN 3.7.2 in $BATS_TEST_TMPDIR/include/oneapi/dnnl is not built for OpenMP"* ]]
  onednn_headers 3.7.2
  configure release "${found[@]}"
  [[ $output == *"back ends             reference"$'\n'* ]]
  [[ $output == *"back end left out     cpu: no program links with $BATS_TEST_TMPDIR/libdnnl.so"* ]]
}
