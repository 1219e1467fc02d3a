#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tools/gpu-check on a machine without a GPU: the bundle is whole, and all but the GPU's parts run from it.

bats_require_minimum_version 1.5.0

setup_file() {
  export bundle=$BATS_FILE_TMPDIR/gpu-check
  # A library that says that it is NCCL, for the bundle to take along.
  cc -shared -fPIC -x c -o "$BATS_FILE_TMPDIR/libnccl.so" "$BATS_TEST_DIRNAME/made_nccl.c"
  "$BATS_TEST_DIRNAME/../../tools/gpu-check" bundle "$bundle.tar.gz" --nccl "$BATS_FILE_TMPDIR/libnccl.so" --card 90
  tar -xzf "$bundle.tar.gz" -C "$BATS_FILE_TMPDIR"
}

# One test of ten of each share of the contract tests, which the unit tests run in full; and which shares they are.
# shellcheck disable=SC2016 # the script expands them
sample_contract_tests() {
  mv "$bundle/tests/trainer_backend_test" "$bundle/tests/all_of_the_contract"
  printf '%s\n' '#!/bin/sh' 'echo "$GTEST_SHARD_INDEX of $GTEST_TOTAL_SHARDS $1" >> '"$BATS_TEST_TMPDIR/shares" \
    "GTEST_TOTAL_SHARDS=\$((GTEST_TOTAL_SHARDS * 10)) exec $bundle/tests/all_of_the_contract \"\$@\"" > "$bundle/tests/trainer_backend_test"
  chmod +x "$bundle/tests/trainer_backend_test"
}

@test "every part runs from the bundle, with the cpu back end" {
  sample_contract_tests
  run "$bundle/gpu-check" run --backend cpu --arch resnet_tiny --batch 4 --steps 15 --seconds 900 --logs "$BATS_TEST_TMPDIR/logs.tar.gz"
  echo "$output"
  [ "$status" -eq 0 ]
  for part in contract-{1..4} steps train-fp32 train-fp16 two-ranks ddltraind-fp16; do
    grep -qE "^$part +ok " <<< "$output"
  done
  grep -qE '^ddltraind-fp16 +ok +[0-9]+ s, [0-9.]+ images/s$' <<< "$output"
  grep -qE '^ddltraind-fp16 +[0-9.]+$' <<< "$output"
  grep -qE '^loss after 30 steps: fp32 [0-9.]+, fp16 [0-9.]+, bf16 [0-9.]+$' <<< "$output"
  # What is kept is one file, and it has all that was printed.
  tar -xzf "$BATS_TEST_TMPDIR/logs.tar.gz" -C "$BATS_TEST_TMPDIR"
  grep -q '^ddltraind-fp16 .* images/s$' "$BATS_TEST_TMPDIR/results.log"
  # All tests of the contract, in whichever part.
  [ "$(sort "$BATS_TEST_TMPDIR/shares")" = "$(printf '%d of 4 --gtest_filter=*cpu*:-*Gradient.*\n' 0 1 2 3)" ]
  [ "$("$bundle/tests/all_of_the_contract" --gtest_list_tests --gtest_filter='*cpu*:-*Gradient.*' | grep -c '^  ')" -gt 100 ]
  for log in "$BATS_TEST_TMPDIR"/contract-?.log; do grep -qE '^\[==========\] [1-9][0-9]* tests from .* ran' "$log"; done
  [ "$(find "$BATS_TEST_TMPDIR" -name 'logs.tar.gz*' | wc -l)" -eq 1 ]
}

@test "the part of several ranks runs alone, with the cpu back end" {
  run "$bundle/gpu-check" run --only several-ranks --backend cpu --arch resnet_tiny --batch 8 --seconds 600
  echo "$output"
  [ "$status" -eq 0 ]
  for part in 2 4 same-weights killed stopped left-early resume 2-starts 4-starts; do
    grep -qE "^ranks-$part +ok " <<< "$output"
  done
  [[ $output != *contract-* ]]
}

@test "the part account runs alone, with the cpu back end and stand-ins for the profilers of a GPU" {
  mkdir "$BATS_TEST_TMPDIR/bin"
  # In samples of 20 ms: half of them at the cap of power (4).
  printf '%s\n' '#!/bin/sh' '[ "$4" = 20 ] || exit 0' 'for clock in 1500 1980 1700; do echo "0, $clock, 690.5, 0x0000000000000004"; done' \
    'for clock in 1600 1800 1650; do echo "0, $clock, 650.1, 0x0000000000000000"; done' 'exec sleep 600' > "$BATS_TEST_TMPDIR/bin/nvidia-smi"
  printf '%s\n' '#!/bin/sh' 'echo "$@" >> "$PROFILERS"' 'while [ "${1#*/bin/ddltraind}" = "$1" ]; do shift; done' 'exec "$@"' > "$BATS_TEST_TMPDIR/bin/ncu"
  chmod +x "$BATS_TEST_TMPDIR"/bin/*
  PROFILERS=$BATS_TEST_TMPDIR/profilers PATH=$BATS_TEST_TMPDIR/bin:$PATH run "$bundle/gpu-check" run --only account --backend cpu \
    --arch resnet_tiny --batch 16 --steps 10 --seconds 600 --logs "$BATS_TEST_TMPDIR/logs.tar.gz"
  echo "$output"
  [ "$status" -eq 0 ]
  for part in autotune 16 2 profile ncu; do grep -qE "^account-$part +ok " <<< "$output"; done
  grep -qE '^account-nsys +left out: there is no nsys$' <<< "$output"
  [ "$(grep -c '^  6 samples: 1650 MHz, 650 W in the median; clocks_throttle_reasons' <<< "$output")" -eq 2 ]
  grep -qE 'clocks_throttle_reasons.* 0x0000000000000004 50 %' <<< "$output"
  # ncu locks clocks unless told not to, and takes its kernels one by one.
  grep -qE -- '--clock-control none .*--graph=off' "$BATS_TEST_TMPDIR/profilers"
  tar -xzf "$BATS_TEST_TMPDIR/logs.tar.gz" -C "$BATS_TEST_TMPDIR"
  python3 -c 'import json, sys; assert json.load(open(sys.argv[1]))["ops"]' "$BATS_TEST_TMPDIR/account-profile-json.log"
  [[ $output != *contract-* ]]
}

@test "cuDNN's fused engines are timed at both batch sizes where the back end is cuda" {
  cp -r "$bundle" "$BATS_TEST_TMPDIR/gpu-check"
  printf '%s\n' '#!/bin/sh' "printf 'ddltraind 1\nback ends: cuda reference\n'" > "$BATS_TEST_TMPDIR/gpu-check/bin/ddltraind"
  printf '%s\n' '#!/bin/sh' 'echo "timed $*"' > "$BATS_TEST_TMPDIR/gpu-check/tests/cudnn_fusions"
  chmod +x "$BATS_TEST_TMPDIR/gpu-check/tests/cudnn_fusions"
  run "$BATS_TEST_TMPDIR/gpu-check/gpu-check" run --only account --batch 256 --seconds 600 --logs "$BATS_TEST_TMPDIR/logs.tar.gz"
  echo "$output"
  [ "$status" -eq 0 ]
  grep -qE '^account-cudnn-fusions +ok ' <<< "$output"
  [ "$(tar -xOzf "$BATS_TEST_TMPDIR/logs.tar.gz" ./account-cudnn-fusions.log)" = 'timed 256 32' ]
}

@test "what is wrong with several ranks is the part's, and where it is said" {
  cp -r "$bundle" "$BATS_TEST_TMPDIR/gpu-check"
  printf '%s\n' '#!/bin/sh' 'echo nothing' > "$BATS_TEST_TMPDIR/gpu-check/bin/ddltraind"
  run "$BATS_TEST_TMPDIR/gpu-check/gpu-check" run --only several-ranks --backend cpu --arch resnet_tiny --batch 8 --seconds 600
  echo "$output"
  [ "$status" -eq 1 ]
  grep -qE '^ranks-2 +FAILED .* exit status 1; its end:$' <<< "$output"
  grep -qE "^FAILED fp16: 0 lines 'median of .* instead of 1$" <<< "$output"
}

@test "several ranks are left out where NCCL does not let them share a GPU, with what to give" {
  cp -r "$bundle" "$BATS_TEST_TMPDIR/gpu-check"
  for version in 2.28.9 2.9.1; do
    printf '%s\n' '#!/bin/sh' "printf 'ddltraind 1\nback ends: cuda reference\nNCCL: $version\n'" > "$BATS_TEST_TMPDIR/gpu-check/bin/ddltraind"
    run "$BATS_TEST_TMPDIR/gpu-check/gpu-check" run --only several-ranks
    echo "$output"
    [ "$status" -eq 0 ]
    grep -qE "^several-ranks +left out: ranks share a GPU from NCCL 2.30 on, and here is $version: gpu-check bundle FILE --nccl LIBNCCL.SO$" <<< "$output"
  done
}

@test "the bundle has NCCL, and refuses one that lets no ranks share a GPU" {
  [ -e "$bundle/lib/nccl/libnccl.so.2" ]
  cc -DVERSION=22809 -shared -fPIC -x c -o "$BATS_TEST_TMPDIR/libnccl.so" "$BATS_TEST_DIRNAME/made_nccl.c"
  run "$BATS_TEST_DIRNAME/../../tools/gpu-check" bundle "$BATS_TEST_TMPDIR/old.tar.gz" --nccl "$BATS_TEST_TMPDIR/libnccl.so" --card 90
  echo "$output"
  [ "$status" -eq 64 ]
  [[ $output == *"libnccl.so is NCCL 2.28.9: ranks share a GPU from 2.30 on"* ]]
  [ ! -e "$BATS_TEST_TMPDIR/old.tar.gz" ]
  run -65 "$BATS_TEST_DIRNAME/../../tools/gpu-check" bundle "$BATS_TEST_TMPDIR/other.tar.gz" --nccl "$BATS_TEST_TMPDIR/libnccl.so" --card 70
  [[ $output == *"has no code that compute capability 70 runs, only for 90"* ]]
}

@test "a part that ignores SIGTERM is ended in time, and those for which no time is left are named" {
  cp -r "$bundle" "$BATS_TEST_TMPDIR/gpu-check"
  printf '%s\n' '#!/bin/sh' '[ "$1" != --version ] || exit 0' 'trap "" TERM' 'while :; do sleep 1; done' \
    > "$BATS_TEST_TMPDIR/gpu-check/bin/ddltraind"
  run timeout 100 "$BATS_TEST_TMPDIR/gpu-check/gpu-check" run --backend cpu --arch resnet_tiny --seconds 25
  echo "$output"
  [ "$status" -eq 1 ]
  grep -qE '^ddltraind-fp16 +FAILED +[0-9]+ s, exit status 137; its end:$' <<< "$output"
  grep -qE '^contract-4 +left out: 0 of 25 s are left, it takes about 60$' <<< "$output"
}

@test "the libraries come from the bundle" {
  LD_LIBRARY_PATH="$bundle/lib/bundled" run ldd "$bundle/bin/ddltraind"
  [[ $output == *"libdnnl"*"=> $bundle/lib/bundled/"* ]] || [[ $output != *libdnnl* ]]
}

@test "no GPU is 69, with its reason" {
  [ ! -e /dev/nvidia0 ] || skip "there is a GPU"
  run -69 "$bundle/gpu-check" run
  [[ $output == *"the back end cuda does not run here; --backend cpu tries the rest"* ]]
}

@test "misuse is 64" {
  run -64 "$bundle/gpu-check" run --batch
  [[ $output == *"--batch needs a value"* ]]
  run -64 "$bundle/gpu-check" run --seconds soon
  [[ $output == *"--seconds=soon is not a number of 1 or more"* ]]
  run -64 "$bundle/gpu-check" run --only contract
  [[ $output == *"--only=contract is none of its parts: several-ranks, account"* ]]
  run -64 "$bundle/gpu-check" bundle
  run -64 "$bundle/gpu-check" bundle "$BATS_TEST_TMPDIR/x.tar.gz" --nccl
  [[ $output == *"--nccl needs a value"* ]]
  run -64 "$bundle/gpu-check" bundle "$BATS_TEST_TMPDIR/x.tar.gz" --card 90
  [[ $output == *"--card 90 is for --nccl LIBNCCL.SO, which is cut to it"* ]]
  run -64 "$bundle/gpu-check" bundle "$BATS_TEST_TMPDIR/x.tar.gz" --nccl libnccl.so --card sm_90
  [[ $output == *"--card=sm_90 is no compute capability: give it as 90"* ]]
  run -64 "$BATS_TEST_DIRNAME/../../tools/gpu-check" bundle "$bundle.tar.gz"
  [[ $output == *"is there already; give another name"* ]]
  run -64 "$BATS_TEST_DIRNAME/../../tools/gpu-check" bundle "$BATS_TEST_TMPDIR/folder"
  [[ $output == *"give it a name that ends in .tar.gz"* ]]
}
