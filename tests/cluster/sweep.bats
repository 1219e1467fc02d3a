#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# ddlbench sweep on a real Slurm: one array of jobs, and in an allocation. The GPUs are device files, so ranks compute on the CPU.

# shellcheck disable=SC2154 # run and common.bash set them

load common

setup_file() { start_cluster 3 2 4; }

teardown_file() { stop_cluster; }

setup() {
  empty_home
  options=('--cases=1n1g,1n2g,2n2g' --repeats=2 --steps=25 --arch=resnet_tiny --batch_size=4 --ddlrun=-v)
  small=(-- --image_size=32 --classes=10 --backend=cpu --threads=1)
}

# Every case ran on so many ranks of so many nodes, and the tables have all of them.
require_results() {
  local case ranks nodes repeat
  for case in 1n1g:1:1 1n2g:2:1 2n2g:4:2; do
    IFS=: read -r case ranks nodes <<< "$case"
    for repeat in 1 2; do
      grep -q "Num GPUs: $ranks$" "w/bz4_fp32_synthetic/$case/rtiny_b4_fp32_$repeat.log"
      grep -qE "$ranks ranks? on $nodes nodes?$" "w/bz4_fp32_synthetic/$case/rtiny_b4_fp32_$repeat.log" # the plan, of -v
    done
  done
  grep -qE '^\| 1 +\| 1 +\| [0-9.]+ +\| 1\.00 ' <<< "$1"
  grep -qE '^\| 1 +\| 2 +\| [0-9.]+ +\| [0-9.]+ +\| [0-9.]+ +\| 2 ' <<< "$1"
  grep -qE '^\| 2 +\| 4 +\| [0-9.]+ +\| [0-9.]+ +\| [0-9.]+ +\| 2 ' <<< "$1"
  [ "$(python3 -c 'import json; print(*json.load(open("w/result/bz4_fp32_synthetic_result.json"))["rtiny"])')" = "1n1g 1n2g 2n2g" ]
}

@test "submitted as one array: a task for each run, and the last one prints the tables" {
  local id
  run hpc ddlbench sweep --submit --sbatch=--time=10 "${options[@]}" w "${small[@]}"
  expect_status 0
  [[ $output == *"--array=1-6%1 --nodes=2 --gres=gpu:2 "*"Submitted batch job "*"when the array has ended: ddlbench extract "* ]]
  id=$(sed -n 's/^Submitted batch job //p' <<< "$output")
  wait_for 300 job_has_ended "$id"
  tail -n 5 w/slurm-*.out
  [ "$(hpc scontrol show job "$id" | grep -c 'JobState=COMPLETED')" -eq 6 ]
  require_results "$(cat "w/slurm-${id}_6.out")"
  # No other task printed tables.
  [ "$(grep -l node_num w/slurm-*.out)" = "w/slurm-${id}_6.out" ]
  run hpc ddlbench extract --train_batches=25 w
  [ "$status" -eq 0 ]
  require_results "$output"
}

@test "in an allocation: the runs come one after the other, each on its part of the nodes" {
  limit=300 run hpc salloc -Q -N3 --gres=gpu:2 ddlbench sweep "${options[@]}" w "${small[@]}"
  expect_status 0
  require_results "$output"
  run hpc ddlbench report --output=page.html --json w
  expect_status 0
  for plot in throughput loss scaling efficiency; do grep -q "<svg id=\"$plot\"" page.html; done
  run hpc ddlbench report --json w
  # Of each case both repeats, and a point on the line.
  [ "$(jq -c "[.runs[].ranks]" <<< "$output")" = "[1,1,2,2,4,4]" ]
  [ "$(jq -c '[.scaling[].points[].ranks]' <<< "$output")" = "[1,2,4]" ]
}

@test "a case that the allocation has no nodes for fails with what to write, and the others are measured" {
  limit=300 run hpc salloc -Q -N1 --gres=gpu:2 ddlbench sweep --cases=1n1g,2n2g --repeats=1 --steps=25 --arch=resnet_tiny \
    --batch_size=4 w "${small[@]}"
  expect_status 78
  [[ $output == *"2n2g/rtiny_b4_fp32_1.log.failed: the run failed: exit code 78; the last line: ddlrun: "* ]]
  grep -qE '^\| 1 +\| 1 +\| [0-9.]+ +\| 1\.00 ' <<< "$output"
}
