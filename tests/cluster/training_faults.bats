#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Ranks of ddltraind that die or hang in the middle of their work, on a real Slurm: the job ends in time and says who it was.

# shellcheck disable=SC2016 # the ranks' shells expand, not ours
# shellcheck disable=SC2154 # set by bats and common.bash

load common

setup_file() {
  CLUSTER_SLURM_CONF=SlurmdTimeout=15 start_cluster 2 4 8
  has_cluster || return 0
  # An evaluation that takes more than the two seconds that tests wait in it, on fast processors, too.
  "$DDLRUN_BUILD/bin/ddldata" synth --classes 10 --images 64 --validation_images 20000 --size 40 "$cluster_dir/data" > /dev/null
  cc -shared -fPIC -o "$cluster_dir/fault.so" "$BATS_TEST_DIRNAME/../fault.c" -ldl
}
teardown_file() { stop_cluster; }

# Two nodes with a rank each, for a job that would take for ever; a hung rank is to be found after 2 seconds, at start-up after 20.
setup() {
  empty_home
  script job "mkdir \$PHASE && cd \$PHASE && ddlrun --log-dir logs --end-limit 5 -x LD_PRELOAD=\$PRELOAD ddltraind --backend=cpu --arch=resnet_tiny --data_dir=$cluster_dir/data \
--classes=10 --image_size=224 --threads=1 --data_threads=1 --batch_size=1 --iter_unit=batch --lr_warmup_epochs=0 --hang_floor_seconds=2 \
--display_every=1 \"\$@\"" 'echo "exit code $?"'
}

teardown() {
  has_cluster || return 0
  local node
  for node in n1 n2; do wait_for 20 nothing_left_on "$node"; done
}

# start PHASE FAULT FUNCTION OPTIONS...: rank 1 has FAULT in its first call of FUNCTION when there is a file now.PHASE (tests/fault.c); the
# job's output is PHASE.out.
start() {
  local phase=$1 fault=$2 function=$3
  shift 3
  hpc env PHASE="$phase" PRELOAD="$cluster_dir/fault.so" FAULT_RANK=1 FAULT="$fault" FAULT_IN="$function" FAULT_WHEN="$work/now.$phase" \
    sbatch --quiet --no-requeue -N2 --gres=gpu:1 --output="$work/$phase.out" job "$@"
}

says() { grep -qs "$2" "$1.out"; }

# fails FAULT SECONDS: rank 1, on n2, has it at start-up, in a step, in an all-reduce and in evaluation, each in a job of its own.
fails() {
  local phase
  : > now.start-up
  start start-up "$1" MPI_Init_thread --mode=train --num_iter=100000
  start step "$1" dnnl_primitive_execute --mode=train --num_iter=100000
  start all-reduce "$1" MPI_Allreduce --mode=train --num_iter=100000
  start evaluation "$1" dnnl_primitive_execute --num_iter=2
  for phase in step all-reduce; do
    wait_for 30 says "$phase" 'iteration: 20$'
    : > "now.$phase"
  done
  wait_for 30 says evaluation 'Starting Model Evaluation'
  sleep 2 # not in its first batches, which have more time
  : > now.evaluation
  began=$SECONDS
  for phase in start-up step all-reduce evaluation; do wait_for 60 says "$phase" '^exit code'; done
  for phase in start-up step all-reduce evaluation; do
    echo "--- $phase"
    grep -vE 'NVLOG|^DLL|^[0-9T:+-]* step|^\+ ' "$phase.out"
  done
  [ $((SECONDS - began)) -le "$2" ]
}

# verdict PHASE: the last line of ddlrun.
verdict() { grep '^ddlrun: ' "$1.out" | tail -n 1; }

# died CODE HOW: in every phase the job ended with CODE, and named rank 1.
died() {
  local phase
  for phase in start-up step all-reduce evaluation; do
    echo "$phase: $(verdict "$phase")"
    says "$phase" "^exit code $1$"
    [[ $(verdict "$phase") =~ "rank 1 on n2 (pid "[0-9]+") ended first, with $2, " ]]
  done
}

@test "SIGKILL at start-up, in a step, in an all-reduce, in evaluation: 137" {
  fails kill 20
  died 137 'signal 9 (Killed)'
}

@test "SIGSEGV at start-up, in a step, in an all-reduce, in evaluation: 139" {
  fails segv 20
  died 139 'signal 11 (Segmentation fault)'
}

@test "exit(3) at start-up, in a step, in an all-reduce, in evaluation: 3" {
  fails exit 20
  died 3 'exit code 3'
}

@test "SIGSTOP at start-up, in a step, in an all-reduce, in evaluation: 70, and it is named" {
  local phase
  fails stop 40
  for phase in start-up step all-reduce evaluation; do says "$phase" '^exit code 70$'; done
  says start-up 'ddltraind: rank 0 on n1: no progress for 20 s before the first step: rank 1 does not answer: '
  for phase in step all-reduce; do
    says "$phase" 'ddltraind: rank 0 on n1: no progress for [0-9]* s in training, step [0-9]*: rank 1 on n2 does not answer: '
  done
  says evaluation 'ddltraind: rank 0 on n1: no progress for [0-9]* s in evaluation, after step 2: rank 1 on n2 does not answer: '
  [ -z "$(find . -name '.hang-*')" ]
}

@test "SIGSTOP in the last moments of a rank, when its work is done: it is named, and the job ends" {
  local phase
  for phase in goodbye afterwards; do : > "now.$phase"; done
  start goodbye stop MPI_Finalize --mode=train --num_iter=3
  start afterwards stop after_MPI_Finalize --mode=train --num_iter=3
  for phase in goodbye afterwards; do
    wait_for 60 says "$phase" '^exit code'
    grep -vE 'NVLOG|^DLL|^[0-9T:+-]* step|^\+ ' "$phase.out"
    [ -d "$phase/checkpoints/step-0000000003" ]
  done
  says goodbye '^exit code 70$'
  says goodbye 'rank 0 on n1: no progress for [0-9]* s .*: rank 1 does not answer: \|rank 1 on n2 does not answer: '
  says afterwards '^exit code 69$'
  [[ $(verdict afterwards) == *"the job failed: its end hung: rank 1 on n2 did not end in time after the other ranks had (--end-limit); rank 1 (n2, pid "*"): stopped by SIGSTOP "*"; 1 of 2 ranks have ended" ]]
}

@test "the network cut: the job ends, and says that it is the network" {
  start step none none --mode=train --num_iter=100000
  wait_for 30 says step 'iteration: 20$'
  cluster cut n2
  # Slurm ends the job, the script included, when it takes the node for lost; the ranks are faster, but srun waits for the node.
  wait_for 60 nothing_left_on n1 || { cluster heal n2; false; }
  cluster heal n2
  grep -vE 'NVLOG|^DLL|^[0-9T:+-]* step' step.out
  says step 'ddlrun-rank: rank 0 on n1 (pid .*) ended with exit code 70'
  says step 'no progress for 2 s in training, step .*: all 2 ranks wait for each other: the network between their nodes fails'
  wait_for 60 eval '[ "$(cluster in sinfo -h -N -o %t | sort -u)" = idle ]'
}
