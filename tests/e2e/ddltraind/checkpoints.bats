#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What ddlctl does with the checkpoints of a training: list, verify, export.

load common

ctl() { timeout 60 "$DDLRUN_BUILD/bin/ddlctl" "$@"; }

# Turns a bit of the last byte of FILE.
turn_last_bit() {
  python3 -c '
import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(-1, 2)
    last = file.read(1)[0]
    file.seek(-1, 2)
    file.write(bytes([last ^ 1]))' "$1"
}

@test "list and verify tell good checkpoints from damaged ones" {
  expect=0 train 1 --num_iter=6 --mode=train --results_dir=run --checkpoint_every=2 --keep_checkpoints=3
  run ctl checkpoint list run
  expect_status 0
  [[ ${lines[0]} == "STEP  EPOCHS  "*"SIZE  WRITTEN "*"NETWORK "*"DDLTRAIND  STATE" ]]
  [ "$(awk 'NR > 1 { print $1, $2, $NF }' <<< "$output" | paste -sd, -)" = "6 0 whole,4 0 whole,2 0 whole" ]
  run ctl checkpoint verify run
  expect_status 0
  [[ ${lines[0]} == "step 2: all checksums hold: "*" tensors, "*" MB" ]]
  turn_last_bit run/checkpoints/step-0000000004/model.safetensors
  expect=65 run_separate ctl checkpoint verify run
  [[ $stderr == "ddlctl: step 4: run/checkpoints/step-0000000004/model.safetensors: damaged: tensor '"*"' has the wrong checksum" ]]
  [ "${#lines[@]}" -eq 2 ]
  ctl checkpoint verify run 6
  run -65 ctl checkpoint verify run 4
}

@test "export writes what --export_dir writes, to the byte, of one rank and of three" {
  for ranks in 1 3; do
    expect=0 train "$ranks" --num_iter=4 --mode=train --results_dir="run$ranks" --export_dir="final$ranks" --checkpoint_every=2 \
      --keep_checkpoints=2
    [ "$(ctl checkpoint export "run$ranks" "w$ranks.safetensors")" = "weights of step 4 written: w$ranks.safetensors" ]
    cmp "final$ranks/model.safetensors" "w$ranks.safetensors"
    ctl checkpoint export "run$ranks" 2 "early$ranks.safetensors"
    run ! cmp -s "final$ranks/model.safetensors" "early$ranks.safetensors"
  done
  run -64 --separate-stderr ctl checkpoint export run1 w1.safetensors
  [ "$stderr" = "ddlctl: w1.safetensors is there already, and is not replaced: give another name" ]
  cmp final1/model.safetensors w1.safetensors
  # Of two at once one has the name.
  local pids=() codes='' pid
  for _ in 1 2; do
    ctl checkpoint export run1 both.safetensors 2> /dev/null 3>&- &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do
    if wait "$pid"; then codes+=0; else codes+=$?; fi
  done
  [[ $codes == 064 || $codes == 640 ]]
  cmp final1/model.safetensors both.safetensors
  [ -z "$(find . -maxdepth 1 -name '*partial*')" ]
}

@test "misuse of the commands for files is said in one line" {
  refused() { # CODE TEXT ARGUMENT...
    local code=$1 text=$2
    shift 2
    run --separate-stderr ctl checkpoint "$@"
    echo "$* -> $status: $stderr"
    [ "$status" -eq "$code" ]
    [[ $stderr == "ddlctl: "*"$text"* ]]
  }
  mkdir list
  refused 66 "there is no checkpoint in ./list (no step-... in ./list/checkpoints): give the --model_dir, or the --results_dir, of a training" list ./list
  refused 69 "there is no training in ./list that can be asked" ./list
  refused 64 "checkpoint list DIR is the order of the words" run list
  refused 64 "DIR is required" verify
  refused 64 "unknown argument --jsn" list --jsn run
  refused 64 "FILE is required: DIR [STEP] FILE.safetensors" export run
  refused 64 "FILE needs a name that ends in .safetensors, not '12'" export run 12
  refused 64 "needs the number of a step, not 'last'" verify run last
}
