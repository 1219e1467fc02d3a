#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# ddltraind --profile: what each op takes beside what the machine allows.

load common

# profile_says PYTHON: an expression over the document of run/profile.json, p, and its ops.
profile_says() {
  python3 -c "import json, math, sys
p = json.load(open('run/profile.json'))
ops = p['ops']
sys.exit(not ($1))"
}

@test "profile: every op of the steps, worst first, in a table, JSON and CSV" {
  expect=0 train 2 --num_iter=8 --mode=train --results_dir=run --profile=3:4 --roofline=100:10
  [[ $messages == *"profile written: run/profile.csv"* ]]
  [[ $output == *"Profile of steps 3 to 6 on rank 0, means of a step; cpu: "* ]]
  [[ $output == *"limits   100.0 GFLOP/s and 10.00 GB/s, given by --roofline"* ]]
  grep -qE '^ +[0-9.-]+ .* (compute|memory) +[0-9]+ %  batch norm forward$' <<< "$output"
  grep -qE '^ +[0-9.-]+ .* (compute|memory) +[0-9]+ %  fc  linear backward  8x32 > 8x10$' <<< "$output"
  profile_says 'p["peaks"] == "given" and p["first_step"] == 3 and p["steps"] == 4 and p["peak_flops"] == 1e11'
  profile_says 'sum(op["calls"] for op in ops) == 16 + 15 + 16 + 32 + 9'
  profile_says 'ops == sorted(ops, key=lambda op: -op["lost_seconds"])'
  profile_says 'all(math.isclose(op["limit_seconds"], max(op["flop"] / 1e11, op["bytes"] / 1e10)) for op in ops)'
  profile_says 'all(math.isclose(op["share"], op["limit_seconds"] / op["seconds"]) for op in ops)'
  profile_says 'math.isclose(sum(op["seconds"] for op in ops), p["op_seconds"]) and 0 < p["op_seconds"] < p["step_seconds"]'
  profile_says 'math.isclose(sum(x["seconds"] for x in p["layers"]), p["op_seconds"])'
  profile_says 'math.isclose(sum(x["seconds"] for x in p["kinds"]), p["op_seconds"])'
  # 8 images of 32 x 32 pixels to 8 channels of 16 x 16, by 7 x 7 x 3 products.
  profile_says '[op["flop"] for op in ops if op["layer"] == "conv1" and op["op"] == "convolution forward"] == [2 * 8 * 8 * 256 * 147]'
  python3 -c "import csv, json
rows = list(csv.DictReader(open('run/profile.csv')))
ops = json.load(open('run/profile.json'))['ops']
assert [row['shape'] for row in rows] == [op['shape'] for op in ops]
assert [float(row['seconds']) for row in rows] == [op['seconds'] for op in ops]"
}

@test "profile: the machine's limits are measured, and the weights are those of a run without" {
  expect=0 train 1 --num_iter=5 --mode=train --results_dir=run --profile
  [[ $messages == *"measuring what the machine allows, for --profile"* ]]
  [[ $output == *"Profile of steps 4 to 5 on rank 0"* ]]
  [[ $output == *" GB/s, measured at the start of this run"* ]]
  profile_says 'p["peaks"] == "measured" and 1e8 < p["peak_flops"] < 1e17 and 1e8 < p["peak_bytes_per_second"] < 1e14'
  expect=0 train 1 --num_iter=5 --mode=train --results_dir=plain
  [[ $output != *"Profile of"* ]]
  cmp {run,plain}/checkpoints/step-0000000005/model.safetensors
  [ ! -e plain/profile.json ]
}

@test "profile: steps that are not run are said; misuse, 64; a place that cannot be written, 71" {
  expect=0 train 1 --num_iter=3 --mode=train --results_dir=run --profile --roofline=1:1
  [[ $messages == *"warning: --profile shows nothing: steps 4 to 13 are not among the steps 1 to 3 of this launch"* ]]
  [ ! -e run/profile.json ]
  expect=64 train 1 --mode=evaluate --results_dir=new --model_dir=run --profile
  [[ $messages == *"--profile shows the steps of a training: --mode=evaluate has none"* ]]
  expect=64 train 1 --num_iter=3 --mode=train --results_dir=new --roofline=1:1
  [[ $messages == *"--roofline is for --profile, which is not asked for"* ]]
  mkdir -p new/profile.json
  expect=71 train 1 --num_iter=3 --mode=train --results_dir=new --profile=1:2 --roofline=1:1
  [[ $messages == *"cannot write new/profile.json: it is a directory; give another --results_dir"* ]]
  [ ! -e new/checkpoints ]
}
