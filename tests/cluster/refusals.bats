#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What ddlrun does not start on a real Slurm: each refusal has its exit code and the line to write instead.

# shellcheck disable=SC2016 # the ranks' shells expand, not ours
# shellcheck disable=SC2154 # set by bats and common.bash

load common

setup_file() { start_cluster 3 4 8; }
teardown_file() { stop_cluster; }
setup() {
  empty_home
  script job 'ddlrun "$@" sh -c "echo rank \$RANK \$(hostname) \$LOCAL_RANK/\$LOCAL_WORLD_SIZE"'
}

# job_of WORD...: the job's script calls ddlrun with them.
job_of() { script job "ddlrun $* sh -c 'echo rank \$RANK \$(hostname) \$LOCAL_RANK/\$LOCAL_WORLD_SIZE'"; }

ranks() { sed -n 's/^rank //p' <<< "$output" | sort -n; }

# refused CODE: with this exit code, in one line, and no rank was started.
refused() {
  echo "$output"
  [ "$status" -eq "$1" ]
  [ "$(grep -c '^ddlrun: ' <<< "$output")" -eq 1 ]
  [[ $output == *"ddlrun: [ERROR DDL-20-$1] "* ]]
  [ -z "$(ranks)" ]
}

@test "a job that asks for nothing on nodes with GPUs has forgotten them" {
  batch job -N2
  refused 78
  [[ $output == *"n1 has 4 GPUs, but the job was granted none"*"#SBATCH --gres=gpu:4"*"ddlrun -n N or --accelerators 0"* ]]
  run hpc salloc --quiet -N2 ./job
  refused 78
  [[ $output == *"#SBATCH --gres=gpu:4"* ]]
}

@test "without GPUs goes on what asks for tasks, for ranks, or for no GPUs" {
  batch job -N2 --ntasks-per-node=3
  [ "$(ranks | cut -d' ' -f2,3 | tr '\n' ' ')" = "n1 0/3 n1 1/3 n1 2/3 n2 0/3 n2 1/3 n2 2/3 " ]
  job_of --accelerators 0
  batch job -N2
  echo "$output"
  [ "$(ranks)" = $'0 n1 0/1\n1 n2 0/1' ]
  job_of -n 1
  batch job -N1
  [ "$(ranks)" = "0 n1 0/1" ]
}

@test "a run without GPUs in a job that has some, of which the user shows none" {
  local launcher launchers=srun none
  ! command -v mpirun > /dev/null || launchers+=" mpirun"
  for launcher in $launchers; do
    for none in "" NoDevFiles; do
      script job "export CUDA_VISIBLE_DEVICES=$none" "ddlrun --launcher=$launcher --accelerators 0 sh -c 'echo rank \$RANK \$(hostname)'"
      batch job -N2 --gres=gpu:2
      expect_status 0
      [ "$(ranks)" = $'0 n1\n1 n2' ]
    done
  done
  script job "export CUDA_VISIBLE_DEVICES=" "ddlrun true"
  batch job -N2 --gres=gpu:2
  refused 78
  [[ $output == *"CUDA_VISIBLE_DEVICES= contradicts SLURM_GPUS_ON_NODE=2: unset CUDA_VISIBLE_DEVICES, or run without GPUs with ddlrun --accelerators 0"* ]]
}

@test "one task for four GPUs" {
  batch job -N2 --gres=gpu:4 --ntasks-per-node=1
  refused 78
  [[ $output == *"n1: 1 rank for 4 GPUs"*"#SBATCH --ntasks-per-node=4, or leave "*"ddlrun -n 2"* ]]
  job_of -n 2
  batch job -N2 --gres=gpu:4 --ntasks-per-node=1
  [ "$(ranks)" = $'0 n1 0/1\n1 n2 0/1' ]
}

@test "more ranks than GPUs" {
  job_of -n 8
  batch job -N1 --gres=gpu:4
  refused 78
  [[ $output == *"8 ranks asked for, but there is room for 4 on 1 node"*"#SBATCH --nodes=2 or --gres=gpu:8"* ]]
  job_of
  batch job -N1 --gres=gpu:2 --ntasks-per-node=4
  refused 78
  [[ $output == *"n1: 4 ranks for 2 GPUs: write #SBATCH --gres=gpu:4 or #SBATCH --ntasks-per-node=2"* ]]
}

@test "-H and -hostfile choose nodes of the job, with or without their domain" {
  job_of -H n3.cluster.ac.uk,n1:2
  batch job -N3 --gres=gpu:4
  [ "$(ranks)" = $'0 n3 0/4\n1 n3 1/4\n2 n3 2/4\n3 n3 3/4\n4 n1 0/2\n5 n1 1/2' ]
  job_of -H n2,n1
  batch job -N2 --gres=gpu:2
  [ "$(ranks)" = $'0 n2 0/2\n1 n2 1/2\n2 n1 0/2\n3 n1 1/2' ]
  job_of -H n2,n3
  batch job -N1 --gres=gpu:1 : -N2 --gres=gpu:1
  [ "$(ranks)" = $'0 n2 0/1\n1 n3 0/1' ]
  echo 'n2.cluster.ac.uk slots=2' > hosts
  job_of -hostfile hosts
  batch job -N3 --gres=gpu:4
  [ "$(ranks)" = $'0 n2 0/2\n1 n2 1/2' ]
}

@test "-H with a host outside the job" {
  job_of -H n1,n3.cluster
  batch job -N2 --gres=gpu:4
  refused 78
  [[ $output == *"-H n1,n3.cluster names n3.cluster, which is not in this job"*"#SBATCH --nodelist=n3"* ]]
}

@test "a rankfile names hosts of the job, with or without their domain" {
  printf 'rank 0=n2.cluster slot=0:0\nrank 1=n1 slot=0:0\n' > ranks
  job_of --rankfile ranks
  batch job -N2 --gres=gpu:2
  [ "$(ranks)" = $'0 n2 0/1\n1 n1 0/1' ]
  sed -i 's/n2/n3/' ranks
  batch job -N2 --gres=gpu:2
  refused 78
  [[ $output == *"ranks names n3.cluster, which is not in this job"*"#SBATCH --nodelist=n3"* ]]
}

@test "a node that has lost a GPU" {
  cluster at n2 mv /dev/nvidia3 /dev/lost
  batch job -N2 --gres=gpu:4
  cluster at n2 mv /dev/lost /dev/nvidia3
  expect_status 78
  [ "$(grep -c '^ddlrun-rank: .*3 GPU devices in /dev, but the plan counts on 4' <<< "$output")" -eq 1 ]
  [[ $output == *" on n2: 3 GPU devices"*"#SBATCH --exclude=n2"* ]]
}

@test "a shell whose allocation is over" {
  local hint='): leave this shell, or unset its SLURM_ variables: unset "${!SLURM_@}"'
  script shell 'scancel "$SLURM_JOB_ID"' 'until scontrol show job "$SLURM_JOB_ID" | grep -q JobState=CANCELLED; do sleep 0.1; done' \
    'ddlrun true' 'echo "exit code $?"' 'SLURM_JOB_ID=99999 ddlrun true' 'echo "exit code $?"'
  run hpc salloc --quiet -N2 --gres=gpu:4 ./shell
  echo "$output"
  [ "$(grep -c '^exit code 78$' <<< "$output")" -eq 2 ]
  [[ $output == *"ddlrun: [ERROR DDL-20-78] job "*" is over (CANCELLED$hint"*"job 99999 is over (Slurm no longer knows it$hint"* ]]
}

@test "srun in front of ddlrun" {
  script nested 'srun --ntasks=2 ddlrun true'
  batch nested -N2 --gres=gpu:4
  [ "$status" -eq 78 ]
  [[ $output == *"ddlrun runs inside a step of srun"*'write `ddlrun PROGRAM` without srun'* ]]
}

@test "variables that contradict each other" {
  script job 'export SLURM_JOB_NUM_NODES=3' 'ddlrun true'
  batch job -N2 --gres=gpu:4
  refused 78
  [[ $output == *"SLURM_JOB_NUM_NODES=3 contradicts SLURM_JOB_NODELIST=n[1-2]"*"#SBATCH --nodes=2"* ]]
  script job 'unset SLURM_JOB_NODELIST' 'ddlrun true'
  batch job -N2 --gres=gpu:4
  refused 78
  [[ $output == *"SLURM_JOB_NODELIST is missing"*"#SBATCH --export=ALL"* ]]
}

@test "a job that was made smaller: its nodes and the script to source" {
  script job 'scontrol update JobId=$SLURM_JOB_ID NumNodes=2 > /dev/null' 'show="echo rank \$RANK \$(hostname)"' \
    'for launcher in srun mpirun; do' \
    'ddlrun --launcher=$launcher --max-restarts 2 sh -c "$show"; echo "code $?"' \
    'ddlrun --launcher=$launcher -H n2,n3 sh -c "$show"; echo "code $?"' \
    'ddlrun --launcher=$launcher -H n1,n2 sh -c "$show $launcher"; done' \
    'ddlrun --check=full sh -c "$show"; echo "code $?"' \
    '. ./slurm_job_${SLURM_JOB_ID}_resize.sh; for launcher in srun mpirun; do ddlrun --launcher=$launcher sh -c "$show $launcher"; done'
  batch job -N3 --gres=gpu:1
  expect_status 0
  [ "$(grep -c '^code 78' <<< "$output")" -eq 5 ]
  [ "$(grep -cE 'ERROR DDL-20-78. job [0-9]+ has n\[1-2\] now, and no longer n3, .* \. \./slurm_job_[0-9]+_resize.sh, or name .*: ddlrun -H n1,n2$' <<< "$output")" -eq 3 ]
  [ "$(grep -cE 'and no longer n3, .*: ddlrun -H n2$' <<< "$output")" -eq 2 ]
  # With the nodes that are left it runs, twice by each launcher.
  [ "$(ranks | sort | uniq -c | xargs)" = "2 0 n1 mpirun 2 0 n1 srun 2 1 n2 mpirun 2 1 n2 srun" ]
}
