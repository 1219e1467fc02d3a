#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Nodes that die or hang while Slurm has not noticed, on a real Slurm that needs longer for it than the tests take.

# shellcheck disable=SC2016 # the ranks' shells expand, not ours
# shellcheck disable=SC2154 # set by bats and common.bash

load common

setup_file() {
  export CLUSTER_SLURM_CONF="SlurmdTimeout=3000"
  start_cluster 3 2 4
}
teardown_file() { stop_cluster; }
setup() { empty_home; }

# show_job: for a test that fails.  Fails.
show_job() {
  cat job.out
  cluster in sinfo -N
  cluster in squeue --steps
  false
}

# Ranks that end with 69 when they notice that a peer is gone, as ddltraind's do.
notices_its_peers() {
  script rank ': > "on.$DDLRUN_RESTART_COUNT.$(hostname)"' '[ "$DDLRUN_RESTART_COUNT" = 0 ] || exit 0' \
    'while [ ! -e peer-is-gone ]; do sleep 0.1; done' 'echo "no word from my peer" >&2' 'exit 69'
}

@test "a node that dies under ranks that notice is named, and a spare node takes its place" {
  notices_its_peers
  script job 'ddlrun --max-restarts 1 --spare-nodes 1 ./rank' 'echo "exit code $?"'
  hpc sbatch --quiet --no-kill -N3 --gres=gpu:1 --output="$work/job.out" job
  wait_for 30 test -e on.0.n1 || show_job
  wait_for 30 test -e on.0.n2 || show_job
  cluster kill n2
  : > peer-is-gone
  wait_for 120 grep -q '^exit code' job.out || show_job
  cat job.out
  grep -q '^exit code 0' job.out
  grep -q 'the job failed: node n2 was lost' job.out
  grep -q 'starting again in 2 s, restart 1 of 1, without n2' job.out
  [ -e on.1.n1 ] && [ -e on.1.n3 ]
  cluster boot n2
  wait_for 60 all_idle
}

@test "without a spare node the one that died is named all the same" {
  notices_its_peers
  script job 'ddlrun --max-restarts 1 ./rank' 'echo "exit code $?"'
  hpc sbatch --quiet --no-kill -N2 --gres=gpu:1 --output="$work/job.out" job
  wait_for 30 test -e on.0.n1 || show_job
  wait_for 30 test -e on.0.n2 || show_job
  cluster kill n2
  : > peer-is-gone
  wait_for 120 grep -q '^exit code' job.out || show_job
  cat job.out
  grep -q '^exit code 69' job.out
  grep -q 'not started again: a node was lost and no spare is left (--spare-nodes)' job.out
  [[ $(grep '^ddlrun: ' job.out | tail -n 1) == *"the job failed: node n2 was lost" ]]
  cluster boot n2
  wait_for 60 all_idle
}

@test "ranks that miss a peer although all nodes are there start again" {
  notices_its_peers
  # What ends with 69 before all ranks have started would come again.
  script job '{ until [ -e on.0.n1 ] && [ -e on.0.n2 ]; do sleep 0.1; done; : > peer-is-gone; } &' \
    'ddlrun --max-restarts 1 ./rank' 'echo "exit code $?"'
  batch job -N2 --gres=gpu:1
  echo "$output"
  [[ $output == *"ended first, with exit code 69"*"starting again in 2 s, restart 1 of 1"*"exit code 0"* ]]
  [[ $output != *"was lost"* ]]
}

all_idle() { [ "$(cluster in sinfo -h -N -o %t | sort -u)" = idle ]; }

# hangs_at_the_start TIMES: so often the shim on n2 hangs, as on a file system that does not answer.
hangs_at_the_start() {
  local shim=$cluster_dir/opt/libexec/ddlrun/ddlrun-rank time
  [ -e "$shim.real" ] || mv "$shim" "$shim.real"
  printf '%s\n' '#!/bin/sh' "[ \"\$(hostname)\" != n2 ] || for hang in '$work'/hang.*; do" \
    '  rm "$hang" 2> /dev/null && exec sleep 1000' 'done' "exec '$shim.real' \"\$@\"" > "$shim"
  chmod 755 "$shim"
  for ((time = 1; time <= $1; ++time)); do hpc touch hang.$time; done
  echo "start_seconds: 5" > site.yaml
  script rank 'echo "rank $RANK of run $DDLRUN_RESTART_COUNT"'
}

@test "a start that hangs is ended after start_seconds, names the node, and is made once again" {
  hangs_at_the_start 1
  script job 'ddlrun --site ./site.yaml ./rank & wait $!' 'echo "exit code $?"'
  hpc sbatch --quiet -N2 --gres=gpu:1 --output="$work/job.out" job
  wait_for 60 grep -q '^exit code' job.out || show_job
  cat job.out
  grep -q '^exit code 0' job.out
  grep -q 'the job failed: its start hung: on n2 not all programs ran when the time for that was over' job.out
  grep -q 'starting again, once, since the start hung' job.out
  grep -q '^rank 1 of run 1' job.out
  run ! grep -q 'was lost' job.out
}

@test "a start that hangs twice is the end" {
  hangs_at_the_start 2
  script job 'ddlrun --site ./site.yaml ./rank' 'echo "exit code $?"'
  batch job -N2 --gres=gpu:1
  echo "$output"
  [[ $output == *"not started again: the start hung twice"*"its start hung: on n2 "*"exit code 69"* ]]
  wait_for 20 nothing_left_on n2
}
