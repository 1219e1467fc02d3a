#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tools/gpu-check on a machine without a GPU: the bundle is whole, and all but the GPU's parts run from it.

# shellcheck disable=SC2154 # set by bats

bats_require_minimum_version 1.5.0

setup_file() {
  export bundle=$BATS_FILE_TMPDIR/gpu-check
  "$BATS_TEST_DIRNAME/../../tools/gpu-check" bundle "$bundle.tar.gz"
  tar -xzf "$bundle.tar.gz" -C "$BATS_FILE_TMPDIR"
}

@test "every part runs from the bundle, with the cpu back end" {
  run "$bundle/gpu-check" run --backend cpu --arch resnet_tiny --batch 4 --steps 15 --seconds 900 --logs "$BATS_TEST_TMPDIR/logs.tar.gz"
  echo "$output"
  [ "$status" -eq 0 ]
  for part in contract steps train-fp32 train-fp16 two-ranks ddltraind-fp16; do
    grep -qE "^$part +ok " <<< "$output"
  done
  grep -qE '^ddltraind-fp16 +ok +[0-9]+ s, [0-9.]+ images/s$' <<< "$output"
  grep -qE '^ddltraind-fp16 +[0-9.]+$' <<< "$output"
  grep -qE '^loss after 30 steps: fp32 [0-9.]+, fp16 [0-9.]+, bf16 [0-9.]+$' <<< "$output"
  # What is kept is one file, and it has all that was printed.
  tar -xzf "$BATS_TEST_TMPDIR/logs.tar.gz" -C "$BATS_TEST_TMPDIR"
  grep -q '^ddltraind-fp16 .* images/s$' "$BATS_TEST_TMPDIR/results.log"
  [ -s "$BATS_TEST_TMPDIR/contract.log" ]
  [ "$(find "$BATS_TEST_TMPDIR" -name 'logs.tar.gz*' | wc -l)" -eq 1 ]
}

@test "a part that ignores SIGTERM is ended in time, and those for which no time is left are named" {
  cp -r "$bundle" "$BATS_TEST_TMPDIR/gpu-check"
  # shellcheck disable=SC2016 # the script expands it
  printf '%s\n' '#!/bin/sh' '[ "$1" != --version ] || exit 0' 'trap "" TERM' 'while :; do sleep 1; done' \
    > "$BATS_TEST_TMPDIR/gpu-check/bin/ddltraind"
  run timeout 100 "$BATS_TEST_TMPDIR/gpu-check/gpu-check" run --backend cpu --arch resnet_tiny --seconds 25
  echo "$output"
  [ "$status" -eq 1 ]
  grep -qE '^ddltraind-fp16 +FAILED +[0-9]+ s, exit status 137; its end:$' <<< "$output"
  grep -qE '^contract +left out: 0 of 25 s are left, it takes about 60$' <<< "$output"
}

@test "the libraries come from the bundle" {
  LD_LIBRARY_PATH="$bundle/lib/bundled" run ldd "$bundle/bin/ddltraind"
  [[ $output == *"libdnnl"*"=> $bundle/lib/bundled/"* ]] || [[ $output != *libdnnl* ]]
}

@test "no GPU is 69, with its reason" {
  [ ! -e /dev/nvidia0 ] || skip "there is a GPU"
  run "$bundle/gpu-check" run
  [ "$status" -eq 69 ]
  [[ $output == *"the back end cuda does not run here; --backend cpu tries the rest"* ]]
}

@test "misuse is 64" {
  run "$bundle/gpu-check" run --batch
  [ "$status" -eq 64 ]
  [[ $output == *"--batch needs a value"* ]]
  run "$bundle/gpu-check" run --seconds soon
  [ "$status" -eq 64 ]
  [[ $output == *"--seconds=soon is no number of 1 or more"* ]]
  run "$bundle/gpu-check" bundle
  [ "$status" -eq 64 ]
  run "$BATS_TEST_DIRNAME/../../tools/gpu-check" bundle "$bundle.tar.gz"
  [ "$status" -eq 64 ]
  [[ $output == *"is there already; give another name"* ]]
  run "$BATS_TEST_DIRNAME/../../tools/gpu-check" bundle "$BATS_TEST_TMPDIR/folder"
  [ "$status" -eq 64 ]
  [[ $output == *"give it a name that ends in .tar.gz"* ]]
}
