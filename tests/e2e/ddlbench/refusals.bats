#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Mistakes of the command line: exit code 64 and one line that says what to type.

# shellcheck disable=SC2154 # common.bash sets them

load common

# refused TEXT ARGUMENT...
refused() {
  local text=$1
  shift
  run --separate-stderr timeout 20 "$ddlbench" "$@"
  [ "$status" -eq 64 ] || { echo "exit code $status"; return 1; }
  [ -z "$output" ]
  # shellcheck disable=SC2154
  [ "$(wc -l <<< "$stderr")" -eq 1 ]
  [[ $stderr == "ddlbench: "*"$text"* ]] || { echo "$stderr"; return 1; }
}

@test "a mistake is answered with what to type" {
  refused 'a command is missing: sweep, extract, repeat or compare'
  refused 'did you mean extract?' extrct
  refused 'did you mean --steps?' sweep --step=30 w
  refused 'DIR is required' sweep
  refused 'LOG_DIR is required' extract
  refused "--cases: '2x4' is no number of nodes and of GPUs on each such as 2n8g" sweep --cases=1n1g,2x4 w
  refused '--data=real needs --data_dir DIR' sweep --data=real w
  refused '--steps must be more than 20' sweep --steps=20 w
  refused 'there are measurements 1 to 25' sweep --only=26 w
  refused '--submit is for all measurements, --only for one' sweep --submit --only=1 w
  refused '--batch_size must be one number, or one for each of --precision=fp32' sweep --batch_size=8,16 w
  refused '--data' sweep --data=imaginary w
  refused '--repeats' sweep --repeats=many w
  refused '--by' extract --by=guess w
  refused '--warmup_batches must be 20 or more' extract --warmup_batches=10 w
  refused '--train_batches must be 21 or more' extract --train_batches=20 w
  refused 'only ddlbench sweep and repeat take options of ddltraind' extract w -- --backend=cpu
  refused '--repeat must be more than 10' repeat --repeat=10 w
  refused '--batch_size=64 is of all ranks together' repeat --devices=3 w
  refused '--name needs a word' repeat --name=a.b w
  refused '--targets is required' compare w
  refused 'REPORT is required' compare --targets=t.csv
  [ ! -e w ]
}

@test "help and version" {
  run "$ddlbench" --help
  [ "$status" -eq 0 ]
  [[ $output == *sweep*extract*repeat*compare* ]]
  run "$ddlbench" sweep --help
  [[ $output == *"--cases CASE,..."*"1n1g,1n4g,1n8g,2n8g,4n8g"*"Nodes and GPUs on each"* ]]
  run "$ddlbench" --version
  [ "$status" -eq 0 ]
  [[ $output =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]]
}

@test "a full disk is told by the exit code" {
  [ -w /dev/full ] || skip "there is no /dev/full"
  log 1n1g/r50_b4_fp32_1.log 5 10.0 1
  run bash -c "\"$ddlbench\" extract --train_batches=25 . > /dev/full"
  [ "$status" -eq 71 ]
}
