#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tools/gpu-check on a machine without a GPU: the bundle is whole, and all but the GPU's parts run from it.

# shellcheck disable=SC2154 # set by bats

bats_require_minimum_version 1.5.0

setup_file() {
  export bundle=$BATS_FILE_TMPDIR/bundle
  "$BATS_TEST_DIRNAME/../../tools/gpu-check" bundle "$bundle"
}

@test "every part runs from the bundle, with the cpu back end" {
  run "$bundle/gpu-check" run --backend cpu --arch resnet_tiny --batch 4 --steps 15
  echo "$output"
  [ "$status" -eq 0 ]
  for part in contract steps train-fp32 train-fp16 two-ranks ddltraind-fp16; do
    grep -qE "^$part +ok " <<< "$output"
  done
  grep -qE '^ddltraind-fp16 +[0-9.]+$' <<< "$output"
  grep -qE '^loss after 30 steps: fp32 [0-9.]+, fp16 [0-9.]+, bf16 [0-9.]+$' <<< "$output"
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
  run "$bundle/gpu-check" bundle
  [ "$status" -eq 64 ]
  run "$BATS_TEST_DIRNAME/../../tools/gpu-check" bundle "$bundle"
  [ "$status" -eq 64 ]
  [[ $output == *"is there already; name a new folder"* ]]
}
