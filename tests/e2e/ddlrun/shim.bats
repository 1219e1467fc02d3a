#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What passes through the shims of srun's ranks: the srun here starts two of them on this machine, one after the other.

load common

# make_srun REDIRECTION: its ranks are started with it.
make_srun() {
  export SLURM_JOB_ID=4711 SLURM_JOB_NODELIST=n1 SLURM_JOB_NUM_NODES=1 SLURMD_NODENAME=n1 SLURM_GPUS_PER_NODE=2 SLURM_GPUS_ON_NODE=2
  mkdir -p bin
  printf '%s\n' '#!/bin/bash' 'case $1 in' '  --mpi=list) printf "MPI plugin types are...\n\tnone\n"; exit ;;' \
    '  --version) echo slurm 24.11.5; exit ;;' 'esac' 'while [ "$1" != -- ]; do shim=$1; shift; done' 'code=0' \
    'for rank in 0 1; do' \
    "  SLURM_PROCID=\$rank SLURM_LOCALID=\$rank SLURM_STEP_NUM_TASKS=2 \"\$shim\" \"\$@\" $1 || code=\$?" 'done' 'exit $code' > bin/srun
  chmod +x bin/srun
  search_path=$PWD/bin:$PATH # of run_ddlrun
}

# of_srun PROGRAM [ARGUMENT...]: ddlrun with two ranks of that srun.
of_srun() {
  run_ddlrun --launcher=srun --topology "$BATS_TEST_DIRNAME/../../fixtures/hwloc/dgx1v.xml" --bind none --pmi none "$@"
  echo "$output $messages"
}

@test "a program finds its standard streams open although srun gave the shim none" {
  make_srun '<&- >&- 2>&-'
  expect=0 of_srun bash -c 'for fd in 0 1 2; do [ ! -e /proc/$$/fd/$fd ] || echo $fd >> "open.$RANK"; done'
  [ "$(cat open.0)" = $'0\n1\n2' ]
  [ "$(cat open.1)" = $'0\n1\n2' ]
}

@test "why srun cannot say what it starts ranks with is shown" {
  make_srun ''
  printf '%s\n' '#!/bin/sh' 'echo "srun: a note" >&2' 'echo "srun: fatal: getcwd failed: No such file or directory" >&2' 'exit 1' > bin/srun
  expect=69 run_ddlrun --launcher=srun --topology "$BATS_TEST_DIRNAME/../../fixtures/hwloc/dgx1v.xml" --bind none true
  [[ $messages == *"'srun --mpi=list' failed: srun: fatal: getcwd failed: No such file or directory"* ]]
}

@test "a program that prints what shims say is not taken for one, and its lines are shown" {
  make_srun ''
  printf '%s\n' 'ddlrun-rank: rank 0 | last words' 'ddlrun-rank: step 1.1' 'ddlrun-rank: rank 1 has started' \
    'ddlrun-rank: rank 0 on n1 (pid 7) ended with exit code 3' > said
  expect=5 of_srun sh -c '[ $RANK = 1 ] || cat said >&2; [ $RANK = 0 ] || exit 5'
  [ "$(grep -c -x -f said <<< "$messages")" -eq 4 ]
  [[ $messages == *"the job failed: rank 1 on n1 (pid "*" ended first, with exit code 5"* ]]
}

@test "text without a line end is shown although a shim speaks next; of the key nothing is shown" {
  make_srun ''
  expect=5 of_srun sh -c 'printf "half a line of $RANK" >&2; [ $RANK = 0 ] || exit 5'
  grep -x 'half a line of 0' <<< "$messages"
  grep -x 'half a line of 1' <<< "$messages"
  grep -xE 'ddlrun-rank: rank 1 on n1 \(pid [0-9]+\) ended with exit code 5 at 2[^ ]*Z' <<< "$messages"
  run ! grep -F 'ddlrun-rank[' <<< "$messages"
}

@test "a start that takes long because nobody reads yet is not taken for one that hangs" {
  make_srun ''
  echo "start_seconds: 10" > site.yaml # rank 1 has as long once there is a reader, on a busy machine, too
  mkfifo unread
  exec 7<> unread
  # The second rank starts when the first has ended, and that waits for the reader.
  PATH=$search_path "$ddlrun" --site ./site.yaml --launcher=srun --topology "$BATS_TEST_DIRNAME/../../fixtures/hwloc/dgx1v.xml" --bind none \
    --pmi none sh -c 'yes | head -c 3000000; : > "ended.$RANK"' > unread 2> messages 3>&- 7>&- &
  local pid=$!
  sleep 12
  timeout 60 head -c 6000000 <&7 > /dev/null
  wait "$pid"
  [ -e ended.1 ]
  run ! grep -q 'start hung' messages
}

# make_srun_of_one HOSTS: a job on n1 and n2 whose srun starts rank 0, on n1, and tells nothing of rank 1; it takes no short step on
# nodes whose names begin so.
make_srun_of_one() {
  make_srun ''
  export SLURM_JOB_NODELIST='n[1-2]' SLURM_JOB_NUM_NODES=2 SLURM_GPUS_PER_NODE=1 SLURM_GPUS_ON_NODE=1
  printf '%s\n' '#!/bin/sh' 'echo "JobId=4711 JobState=RUNNING Requeue=0 BatchFlag=1 NodeList=n[1-2]"' > bin/scontrol
  printf '%s\n' '#!/bin/bash' 'case $1 in' '  --mpi=list) printf "MPI plugin types are...\n\tnone\n"; exit ;;' \
    '  --version) echo slurm 24.11.5; exit ;;' "  --overlap) [[ \" \$* \" != *\" --nodelist=$1\"* ]]; exit ;;" 'esac' \
    'while [ "$1" != -- ]; do shim=$1; shift; done' \
    'SLURM_PROCID=0 SLURM_LOCALID=0 SLURMD_NODENAME=n1 SLURM_STEP_NUM_TASKS=2 "$shim" "$@"' > bin/srun
  chmod +x bin/scontrol bin/srun
}

@test "a node of which nothing was heard is lost where a short step does not run on it, but on another" {
  make_srun_of_one n2
  expect=5 of_srun sh -c 'exit 5'
  [[ ${messages##*$'\n'} == *"the job failed: node n2 was lost" ]]
}

@test "it is not lost where Slurm takes no short step at all" {
  make_srun_of_one n
  expect=5 of_srun sh -c 'exit 5'
  [[ ${messages##*$'\n'} == *"the job failed: rank 0 on n1 (pid "*" ended first, with exit code 5, "* ]]
}
