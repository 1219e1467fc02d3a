#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Ranks of ddltraind that die or hang in the middle of their work, on a real Slurm: the job ends in time and says who it was.

# shellcheck disable=SC2016 # the ranks' shells expand, not ours
# shellcheck disable=SC2154 # set by bats and common.bash

load common

setup_file() {
  start_cluster 2 2 8
  # An evaluation of a thousand batches.
  "$DDLRUN_BUILD/bin/ddldata" synth --classes 10 --images 64 --validation_images 4000 --size 40 "$cluster_dir/data" > /dev/null
}
teardown_file() { stop_cluster; }

# 2 x 2 ranks of a job that would take for ever; a hung rank is to be found after 3 seconds.
setup() {
  empty_home
  script job "ddlrun ddltraind --arch=resnet_tiny --data_dir=$cluster_dir/data --classes=10 --image_size=32 --threads=1 --data_threads=1 \
--batch_size=1 --iter_unit=batch --lr_warmup_epochs=0 --results_dir=run --hang_floor_seconds=3 --display_every=1 \"\$@\"" 'echo "exit code $?"'
}

teardown() {
  local node
  for node in n1 n2; do wait_for 20 nothing_left_on "$node"; done
}

# start WHEN OPTIONS...: the job runs, and its output has a line with WHEN.
start() {
  local when=$1
  shift
  hpc sbatch --quiet --no-requeue -N2 --gres=gpu:2 --output="$work/job.out" job "$@"
  wait_for 30 grep -qs "$when" job.out
  began=$SECONDS
}

# ended SECONDS: it did, in that time.
ended() {
  wait_for "$1" grep -q '^exit code' job.out
  output=$(cat job.out)
  grep -vE 'NVLOG|^[0-9T:+-]* step' job.out
  [ $((SECONDS - began)) -le "$1" ]
}

# to_rank_2 SIGNAL: on n2.
to_rank_2() {
  local pid
  for pid in $(cluster at n2 pgrep -u hpc -x ddltraind); do
    if cluster at n2 cat "/proc/$pid/environ" | tr '\0' '\n' | grep -qx RANK=2; then cluster at n2 kill "-$1" "$pid"; fi
  done
}

in_a_step() { start 'iteration: 20$' --mode=train --num_iter=100000; }
# Not in its first batches, which have more time.
in_evaluation() {
  start 'Starting Model Evaluation' --num_iter=2
  sleep 1
}

verdict() { grep '^ddlrun: ' <<< "$output" | tail -n 1; }

@test "killed by SIGKILL in a step: 137" {
  in_a_step
  to_rank_2 KILL
  ended 20
  [[ $output == *$'\nexit code 137'* ]]
  [[ $(verdict) == *"rank 2 on n2 "*" ended first, with signal 9 (Killed), "* ]]
}

@test "killed by SIGSEGV in evaluation: 139" {
  in_evaluation
  to_rank_2 SEGV
  ended 20
  [[ $output == *$'\nexit code 139'* ]]
  [[ $(verdict) == *"rank 2 on n2 "*" ended first, with signal 11 (Segmentation fault), "* ]]
}

@test "stopped in a step: 70, and it is named" {
  in_a_step
  to_rank_2 STOP
  ended 20
  [[ $output == *$'\nexit code 70'* ]]
  [[ $output == *"ddltraind: rank 0 on n1: no progress for 3 s in training, step "*": rank 2 on n2 does not answer: "* ]]
  [ -z "$(find run -name '.hang-*')" ]
}

@test "stopped in evaluation: 70, and it is named" {
  in_evaluation
  to_rank_2 STOP
  ended 20
  [[ $output == *$'\nexit code 70'* ]]
  [[ $output == *"ddltraind: rank 0 on n1: no progress for 3 s in evaluation, "*": rank 2 on n2 does not answer: "* ]]
}

@test "the network cut: the job ends, and says that it is the network" {
  in_a_step
  cluster cut n2
  # Slurm ends the job, the script included, when it takes the node for lost; the ranks are faster, but srun waits for the node.
  wait_for 60 nothing_left_on n1 || { cluster heal n2; false; }
  cluster heal n2
  output=$(cat job.out)
  grep -vE 'NVLOG|^[0-9T:+-]* step' job.out
  [[ $output == *"ddlrun-rank: rank 0 on n1 (pid "*") ended with exit code 70"* ]]
  [[ $output == *"no progress for 3 s in training, step "*": all 4 ranks wait for each other: the network between their nodes fails"* ]]
  wait_for 60 eval '[ "$(cluster in sinfo -h -N -o %t | sort -u)" = idle ]'
}
