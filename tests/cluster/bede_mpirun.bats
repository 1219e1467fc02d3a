#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# bede-mpirun in jobs of a real Slurm: mpirun starts its daemons by srun.

# shellcheck disable=SC2016 # the ranks' shells expand, not ours
# shellcheck disable=SC2154 # set by bats and common.bash

load common

setup_file() {
  command -v mpirun > /dev/null || skip_all "mpirun is not installed" || return 0
  start_cluster 3 4 8
}
teardown_file() { stop_cluster; }
setup() { empty_home; }

say='sh -c "echo rank \$OMPI_COMM_WORLD_RANK \$(hostname)"'

# Who ran where, in order.
ranks() { grep '^rank ' <<< "$output" | sort -n -k 2; }

@test "a rank per GPU on every node of the job" {
  script job "bede-mpirun --bede-par 1ppg $say"
  batch job -N2 --gres=gpu:4
  [ "$status" -eq 0 ]
  [ "$(ranks)" = $'rank 0 n1\nrank 1 n1\nrank 2 n1\nrank 3 n1\nrank 4 n2\nrank 5 n2\nrank 6 n2\nrank 7 n2' ]
}

@test "unequal numbers of GPUs, exclusive nodes, and GPUs by task" {
  script job "bede-mpirun --bede-par 1ppg sh -c 'echo rank \$OMPI_COMM_WORLD_RANK \$(hostname) \$CUDA_VISIBLE_DEVICES'"
  batch job -N2 --gpus=6 --ntasks=2 --cpus-per-task=2
  [ "$status" -eq 0 ]
  [ "$(ranks | cut -d' ' -f3- | uniq -c | tr -s ' ')" = $' 4 n1 0,1,2,3\n 2 n2 0,1' ]
  batch job -N2 --gres=gpu:1 --exclusive
  [ "$status" -eq 0 ]
  [ "$(ranks | cut -d' ' -f3- | uniq -c | tr -s ' ')" = $' 4 n1 0,1,2,3\n 4 n2 0,1,2,3' ]
  batch job -N2 --gpus-per-task=2 --ntasks=4
  [ "$status" -eq 0 ]
  [ "$(ranks | cut -d' ' -f3- | uniq -c | tr -s ' ')" = $' 4 n1 0,1,2,3\n 4 n2 0,1,2,3' ]
}

@test "a rank per node, whatever tasks Slurm was asked for, on nodes that are not neighbours" {
  script job "bede-mpirun --bede-par=1ppn $say"
  batch job -N2 --nodelist=n1,n3 --ntasks-per-node=4
  [ "$status" -eq 0 ]
  [ "$(ranks)" = $'rank 0 n1\nrank 1 n3' ]
}

@test "a rank per node, where no variable says how many GPUs the others have" {
  script job "bede-mpirun --bede-par=1ppn sh -c 'echo rank \$OMPI_COMM_WORLD_RANK \$(hostname) \$CUDA_VISIBLE_DEVICES'"
  batch job -N3 --gpus=8
  [ "$status" -eq 0 ]
  [ "$(ranks)" = $'rank 0 n1 0,1,2,3\nrank 1 n2 0,1,2\nrank 2 n3 0' ]
}

@test "mpirun's own options choose among the nodes" {
  script job "bede-mpirun -npernode 1 -n 3 $say" "echo n2 > hosts" "bede-mpirun --bede-par 1ppn --hostfile hosts $say"
  batch job -N3
  [ "$status" -eq 0 ]
  [ "$(ranks)" = $'rank 0 n1\nrank 0 n2\nrank 1 n2\nrank 2 n3' ]
}

@test "a rank that dies on another node ends all of them, and nothing is left" {
  script job 'bede-mpirun --bede-par 1ppn sh -c "[ \$OMPI_COMM_WORLD_RANK = 1 ] && sleep 2 && kill -KILL \$\$; sleep 600"'
  batch job -N2
  [ "$status" -eq 137 ]
  [[ $output == *"bede-mpirun: [ERROR DDL-20-1] mpirun ended with exit code 137"* ]]
  wait_for 10 nothing_left_on n1
  wait_for 10 nothing_left_on n2
}

@test "no GPU granted, and a shell on the login node" {
  script job "bede-mpirun --bede-par 1ppg true"
  batch job -N2
  [ "$status" -eq 78 ]
  [[ $output == *"--bede-par 1ppg: no GPU on n1: ask for GPUs with '#SBATCH --gres=gpu:4'"* ]]
  run hpc salloc --quiet -N2 bede-mpirun true
  [ "$status" -eq 78 ]
  [[ $output == *"this machine is not in the job (SLURM_JOB_NODELIST=n[1-2])"* ]]
}
