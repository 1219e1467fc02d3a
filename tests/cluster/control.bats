#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# ddlctl on a real Slurm: from the job, from the login node and from another node, which reach rank 0 by srun --overlap.

# shellcheck disable=SC2030,SC2031,SC2154 # run and common.bash set them

load common

setup_file() {
  start_cluster 3 1 8
}

teardown_file() { stop_cluster; }

setup() { empty_home; }

# The training of $job is in its midst.
is_training() { [ "$(hpc ddlctl status "$work/run" 2> /dev/null | sed -n 's/^state  *//p')" = training ]; }

@test "a training on two nodes is asked from everywhere, and stops" {
  script train "ddlrun ddltraind --arch=resnet_tiny --classes=10 --image_size=32 --batch_size=4 --threads=1 --backend=cpu \
    --iter_unit=batch --num_iter=1000000 --display_every=1000 --mode=train --results_dir=run --checkpoint_every=0"
  run hpc sbatch --parsable -N2 --gres=gpu:1 --nodelist=n1,n2 --output=train.out "$work/train"
  [ "$status" -eq 0 ]
  local job=$output
  wait_for 60 is_training
  # From the login node.
  run hpc ddlctl status "$work/run"
  echo "$output"
  [[ $output == *"rank 0         process "*" on n1, job $job"* ]]
  # From the node of rank 0, and from another one.
  run hpc srun --overlap --jobid="$job" --nodelist=n1 -N1 -n1 --gres=none ddlctl pause "$work/run"
  echo "$output"
  [[ $output == *"paused after step "* ]]
  run hpc srun --overlap --jobid="$job" --nodelist=n2 -N1 -n1 --gres=none ddlctl checkpoint "$work/run"
  echo "$output"
  [[ $output == *"the checkpoint of step "*" is written"* ]]
  run hpc ddlctl resume "$work/run"
  [[ $output == *"going on after step "* ]]
  # Without srun it says where to go.
  run hpc ddlctl stop --srun=never "$work/run"
  [ "$status" -eq 69 ]
  [[ $output == *"the training runs on n1, not on this machine: log in to n1 and type: ddlctl stop --srun=never "* ]]
  # Another user reaches nothing.
  chmod 755 "$work"
  run cluster as other env PATH="$cluster_dir/opt/bin:/usr/bin:/bin" ddlctl stop "$work/run"
  echo "$output"
  [ "$status" -ne 0 ]
  is_training
  run hpc ddlctl stop "$work/run"
  echo "$output"
  [[ $output == *"stopped after step "*", with the checkpoint of step "* ]]
  wait_for 30 job_has_ended "$job"
  [ "$(hpc ddlctl status "$work/run" | sed -n 's/^state  *//p')" = "done" ]
  wait_for 10 nothing_left_on n1
  wait_for 10 nothing_left_on n2
}
