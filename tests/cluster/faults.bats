#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What happens to ranks, nodes and ddlrun itself, on a real Slurm: the job ends in time, the cause is named, nothing is left.

# shellcheck disable=SC2016 # the ranks' shells expand, not ours
# shellcheck disable=SC2154 # set by bats and common.bash

load common

setup_file() { start_cluster 4 4 8; }
teardown_file() { stop_cluster; }
setup() { empty_home; }

# rank_does ACTION: a job of 2 x 2 ranks that wait, but rank 2, on n2, which does ACTION at once.
rank_does() {
  script job "ddlrun bash -c 'if [ \$RANK = 2 ]; then sleep 0.5; echo this is rank 2 >&2; $1; fi; sleep 100 & wait'" \
    'echo "exit code $?"'
  local start=$SECONDS
  batch job -N2 --gres=gpu:2
  [ $((SECONDS - start)) -le 20 ]
  nothing_is_left
}

nothing_is_left() {
  local node
  for node in n1 n2 n3 n4; do wait_for 10 nothing_left_on "$node"; done
  wait_for 10 no_run_directory
}

no_run_directory() {
  local node
  for node in n1 n2; do [ -z "$(cluster at "$node" find /tmp -maxdepth 1 -name 'ddlrun.*')" ] || return 1; done
}

# The line before the script's own.
verdict() { grep '^ddlrun: ' <<< "$output" | tail -n 1; }

@test "a rank that exits with 3 ends the job with 3 and is named last" {
  rank_does 'exit 3'
  [[ $output == *"exit code 3"* ]]
  [[ $(verdict) =~ "rank 2 on n2 (pid "[0-9]+") ended first, with exit code 3, " ]]
  [[ $output == *"ddlrun: last lines of rank 2:"$'\n'"ddlrun:   | this is rank 2"* ]]
}

@test "a rank that is killed by SIGKILL: 137" {
  rank_does 'kill -KILL $$'
  [[ $output == *"exit code 137"* ]]
  [[ $(verdict) == *"rank 2 on n2 "*" ended first, with signal 9 (Killed), "* ]]
}

@test "a rank that is killed by SIGSEGV: 139" {
  rank_does 'ulimit -c 0; kill -SEGV $$'
  [[ $output == *"exit code 139"* ]]
  [[ $(verdict) == *"rank 2 on n2 "*" ended first, with signal 11 (Segmentation fault), "* ]]
}

@test "the shim of a rank killed with it: the job ends, nothing is left" {
  rank_does 'kill -KILL $PPID; exec sleep 100' # a child of the rank would be lost to this Slurm (proctrack/linuxproc)
  [[ $output == *"exit code 137"* ]]
  [[ $(verdict) == *"rank 2 on n2 ended first, with signal 9 (Killed), "* ]]
}

@test "a program that is not there: 69, and it is named" {
  script job 'for i in 1 2 3; do ddlrun no-such-program; echo "exit code $?"; done'
  batch job -N2 --gres=gpu:1
  echo "$output"
  [ "$(grep -c '^exit code 69' <<< "$output")" -eq 3 ]
  [ "$(grep -cE "^ddlrun: .*the job failed: rank [01] on n[12] ended first" <<< "$output")" -eq 3 ]
  [ "$(grep -cE "rank [01] on n[12]: cannot start 'no-such-program': No such file or directory" <<< "$output")" -ge 3 ]
}

# signalled SIGNAL: a job, on $nodes, whose ranks write what they get; the signal goes to ddlrun alone.
signalled() {
  script rank 'trap "echo got $1 >> got.\$RANK; exit 75" "$1"' ': > "ready.$RANK"' 'while :; do sleep 0.1; done'
  script job "ddlrun ./rank $1 & echo \$! > pid; wait \$!" 'echo "exit code $?"'
  # shellcheck disable=SC2086 # many words
  hpc sbatch --quiet --output="$work/job.out" ${nodes:--N2 --gres=gpu:2} job
  wait_for 20 all_ready
  cluster at n1 kill "-$1" "$(cat pid)"
  wait_for 20 grep -q 'exit code' job.out
  output=$(cat job.out)
  nothing_is_left
}

all_ready() { [ "$(find . -name 'ready.*' | wc -l)" -eq "${world:-4}" ]; }

@test "SIGTERM, SIGINT, SIGUSR1, SIGUSR2 and SIGHUP to ddlrun reach every rank; 75 from all is 75" {
  for signal in TERM USR1 USR2 INT HUP; do
    rm -f got.* ready.* job.out
    signalled "$signal"
    [ "$(cat got.0 got.1 got.2 got.3 | sort -u)" = "got $signal" ]
    [[ $output == *"exit code 75"* ]]
    [[ $output == *"stopped early with a checkpoint written (exit code 75)"* ]]
  done
}

@test "SIGTERM reaches the ranks of every component of a heterogeneous job" {
  nodes="-N1 --gres=gpu:1 : -N2 --gres=gpu:2" world=5
  signalled TERM
  [ "$(cat got.* | sort | uniq -c)" = "      5 got TERM" ]
  [[ $output == *"exit code 75"* ]]
}

@test "ddlrun killed by SIGKILL leaves no rank and no directory" {
  script job 'ddlrun sleep 100' 'echo "exit code $?"'
  hpc sbatch --quiet -N2 --gres=gpu:2 --output="$work/job.out" job
  wait_for 20 eval '! nothing_left_on n2'
  cluster at n1 kill -KILL "$(cluster at n1 pgrep -u hpc -x -o ddlrun)"
  wait_for 20 grep -q 'exit code 137' job.out
  nothing_is_left
}

@test "scancel ends everything" {
  script job 'ddlrun sleep 100'
  hpc sbatch --quiet -N4 --gres=gpu:4 --output="$work/job.out" job
  wait_for 20 eval '! nothing_left_on n4'
  hpc scancel --user=hpc
  nothing_is_left
}

@test "slurmctld restarted in mid-run harms nobody" {
  script job 'ddlrun sh -c "sleep 4; echo rank \$RANK"' 'echo "exit code $?"'
  hpc sbatch --quiet -N2 --gres=gpu:2 --output="$work/job.out" job
  wait_for 20 eval '! nothing_left_on n2'
  cluster ctld stop
  sleep 1
  cluster ctld start
  wait_for 30 grep -q 'exit code' job.out
  [[ $(cat job.out) == *"exit code 0"* ]]
  [ "$(grep -c '^rank ' job.out)" -eq 4 ]
  nothing_is_left
}

@test "a node powered off ends the job; the other nodes are clean" {
  script job 'ddlrun sleep 100' 'echo "exit code $?"'
  hpc sbatch --quiet --no-requeue -N2 --gres=gpu:2 --output="$work/job.out" job
  wait_for 20 eval '! nothing_left_on n2'
  cluster kill n2
  wait_for 60 nothing_left_on n1
  wait_for 10 no_run_directory_on_n1
  cluster boot n2
  wait_for 60 all_idle
}

no_run_directory_on_n1() { [ -z "$(cluster at n1 find /tmp -maxdepth 1 -name 'ddlrun.*')" ]; }
all_idle() { [ "$(cluster in sinfo -h -N -o %t | sort -u)" = idle ]; }
