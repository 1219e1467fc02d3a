#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Jobs that Slurm itself takes from their nodes and queues again: for a job of higher priority, or with the node of the batch script.

# shellcheck disable=SC2016 # the ranks' shells expand, not ours
# shellcheck disable=SC2030,SC2031,SC2154 # run and common.bash set them

load common

train="ddltraind --backend=cpu --arch=resnet_tiny --classes=10 --image_size=32 --batch_size=8 --threads=1 --mode=train --iter_unit=batch \
  --num_iter=1000000 --checkpoint_every=500"

# The job that loses its node is the first: Slurm takes half a minute to queue it again, in which the others run.
setup_file() {
  CLUSTER_SLURM_CONF='PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=main Nodes=ALL Default=YES PriorityTier=1 PreemptMode=REQUEUE GraceTime=30 MaxTime=INFINITE State=UP
PartitionName=urgent Nodes=ALL PriorityTier=10 MaxTime=INFINITE State=UP' start_cluster 5 2 4
  has_cluster || return 0
  cd "$work" || return 1
  lost=$(trains lost -x n1,n2)
  export lost
  cluster kill n3
  # Slurm itself takes another minute to find that out.
  cluster in scontrol update NodeName=n3 State=DOWN Reason=gone
}
teardown_file() { stop_cluster; }
setup() {
  [ -z "${skip_all_reason:-}" ] || skip "$skip_all_reason"
  cd "$work" || return 1
}

# submit NAME SBATCH_OPTION...: the script NAME; prints the number of the job.
submit() { hpc sbatch --parsable -N2 --gres=gpu:1 --open-mode=append --output="$1.out" "${@:2}" "$1"; }

# trains NAME SBATCH_OPTION...: a training into the directory NAME.results, which has written a checkpoint; prints the number of the job.
trains() {
  script "$1" "exec ddlrun --requeue $train --results_dir=$1.results"
  submit "$@"
  wait_for 30 test -e "$1.results/checkpoints/step-0000000500"
}

# goes_on NAME JOB NODES: the training was requeued once, and trains on these nodes from its checkpoint on.
goes_on() {
  wait_for 90 grep -q "resumed from step " "$1.out" || show_job "$1" "$2"
  [[ $(hpc scontrol show job "$2") == *" Restarts=1 "*" NodeList=$3"* ]] || show_job "$1" "$2"
  hpc scancel "$2"
}

# For a test that fails.  Fails.
show_job() {
  grep -v '^DLL\|^:::NVLOG' "$1.out"
  hpc scontrol show job "$2"
  false
}

# has_ended JOB STATE: whether the job is in this state; its record is in $output.
has_ended() {
  run hpc scontrol show job "$1"
  [[ $output == *"JobState=$2 "* ]]
}

@test "jobs that are preempted are requeued once: a training with its checkpoint, and a program that dies of SIGTERM after a second" {
  local training program urgent
  training=$(trains training -w n1,n2)
  script program 'exec ddlrun --requeue --max-restarts 3 sh -c "[ \$DDLRUN_RESTART_COUNT = 1 ] || { : > ready; exec sleep 60; }"'
  program=$(submit program -w n1,n2)
  wait_for 30 test -e ready
  urgent=$(hpc sbatch --parsable -p urgent -w n1,n2 --exclusive --output=/dev/null --wrap 'sleep 1')
  wait_for 30 has_ended "$urgent" COMPLETED || show_job training "$training"

  wait_for 30 has_ended "$program" COMPLETED || show_job program "$program"
  [[ $output == *" Restarts=1 "* ]]
  goes_on training "$training" 'n[1-2]'
  grep -q "stopped by signal 15 after step " training.out
  for name in training program; do
    [ "$(grep -cx "ddlrun: requeueing the job, whose nodes Slurm takes for another one" $name.out)" -eq 1 ]
  done
}

@test "a job that has lost the node of its batch script is requeued by Slurm, and goes on elsewhere" {
  goes_on lost "$lost" 'n[4-5]'
}
