#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What a rank's program finds in a job of a real Slurm: its environment, its standard input.

# shellcheck disable=SC2016 # the ranks' shells expand, not ours
# shellcheck disable=SC2154 # set by bats and common.bash

load common

setup_file() { start_cluster 2 2 8; }
teardown_file() { stop_cluster; }
setup() { empty_home; }

is_running() { hpc scontrol show job "$1" | grep -q "JobState=RUNNING"; }

ranks() { sed -n 's/^rank //p' <<< "$output" | sort -n; }

# job LAUNCHER COMMANDS...: a script whose ranks run the commands in a shell.
job() {
  local launcher=$1
  shift
  script job "ddlrun --launcher=$launcher \"\$@\" sh -c '$*'"
}

launchers() {
  echo srun
  ! command -v mpirun > /dev/null || echo mpirun
}

# Of the rank 3, without those whose value differs from job to job.
readonly variables='RANK=3
WORLD_SIZE=4
LOCAL_RANK=1
LOCAL_WORLD_SIZE=2
GROUP_RANK=1
NODE_RANK=1
MASTER_ADDR=n1
DDLRUN_MASTER_ADDR=n1
HOROVOD_RANK=3
HOROVOD_SIZE=4
HOROVOD_LOCAL_RANK=1
HOROVOD_LOCAL_SIZE=2
HOROVOD_CROSS_RANK=1
HOROVOD_CROSS_SIZE=2
HOROVOD_HOSTNAME=n2
DDLRUN_HOST=n2
DDLRUN_NODE_RANK=1
DDLRUN_NODE_COUNT=2
DDLRUN_RESTART_COUNT=0
DDLRUN_GPUS=2
OMPI_COMM_WORLD_RANK=3
OMPI_COMM_WORLD_SIZE=4
OMPI_COMM_WORLD_LOCAL_RANK=1
OMPI_COMM_WORLD_LOCAL_SIZE=2'

@test "under mpirun no variable of a step makes a framework take a rank for a task of srun" {
  command -v mpirun > /dev/null || skip "mpirun is not installed"
  job mpirun 'echo rank $RANK; env | grep -E "^SLURM_(N?TASKS|NPROCS|NNODES|STEP_N|STEP_T|DISTRIBUTION|PROCID|LOCALID|NODEID)" || :'
  batch job -N2 --gres=gpu:2 --ntasks-per-node=2
  expect_status 0
  [ "$(ranks | tr '\n' ' ')" = '0 1 2 3 ' ]
  ! grep '^SLURM_' <<< "$output"
}

@test "mpirun in a shell of srun --pty: its daemons share the resources of that step" {
  command -v mpirun > /dev/null || skip "mpirun is not installed"
  job mpirun 'echo rank $RANK $(hostname)'
  run hpc script -qec "srun -N2 --gres=gpu:1 --pty ./job" /dev/null # its task on n2 has no terminal, and is refused
  echo "$output"
  [ "$(ranks | tr -d '\r' | tr '\n' ' ')" = '0 n1 1 n2 ' ]
}

@test "a rank is told who it is by the names of torch, Horovod and Open MPI" {
  local launcher port
  for launcher in $(launchers); do
    job "$launcher" '[ $RANK -ne 3 ] || env'
    batch job -N2 --gres=gpu:2
    expect_status 0
    [ "$(comm -23 <(sort <<< "$variables") <(sort <<< "$output"))" = "" ]
    grep -qx "DDLRUN_LAUNCHER=$launcher" <<< "$output"
    port=$(sed -n 's/^MASTER_PORT=//p' <<< "$output")
    [ "$port" -gt 0 ]
    grep -qx "DDLRUN_MASTER_PORT=$port" <<< "$output"
  done
}

@test "options of srun that are left in the environment reach neither the ranks nor srun's answers" {
  job auto 'echo "rank $RANK/$WORLD_SIZE $(hostname) $SLURM_NNODES $SLURM_NTASKS ${SLURM_NO_KILL-} ${SLURM_STDERRMODE-} ${SRUN_CPUS_PER_TASK-}"; echo error >&2'
  local name
  for name in SLURM_NO_KILL=1 SLURM_STDERRMODE=lost SLURM_STDOUTMODE=lost SRUN_OUTPUT=lost SRUN_ERROR=lost SRUN_CPUS_PER_TASK=64 \
    SLURM_MULTI_PROG=1 SLURM_SRUN_MULTI=1 SLURM_RELATIVE=1 SLURM_BCAST=/tmp/bcast SLURM_LABELIO=1 SLURM_HINT=nomultithread \
    SLURM_DISTRIBUTION=cyclic SLURM_NTASKS_PER_CORE=1 SLURM_EXACT=1 SLURM_MEM_PER_NODE=500 SLURM_MEM_PER_GPU=50; do
    echo "with $name"
    batch job -N2 --gres=gpu:2 --export="ALL,$name"
    expect_status 0
    [ "$(ranks)" = "0/4 n1 2 4   
1/4 n1 2 4   
2/4 n2 2 4   
3/4 n2 2 4   " ]
    [ "$(grep -c '^error$' <<< "$output")" -eq 4 ]
    [[ $output == *"with the srun launcher"* ]]
    [ ! -e lost ]
  done
}

@test "the srun that starts mpirun's daemons takes none of them either" {
  command -v mpirun > /dev/null || skip "mpirun is not installed"
  job mpirun 'echo "rank $RANK/$WORLD_SIZE $(hostname)"'
  local name
  for name in SLURM_NO_KILL=1 SLURM_STDERRMODE=lost SRUN_CPUS_PER_TASK=64 SLURM_HINT=nomultithread SLURM_DISTRIBUTION=plane \
    SLURM_MEM_PER_NODE=500; do
    echo "with $name"
    batch job -N2 --gres=gpu:2 --export="ALL,$name"
    expect_status 0
    [ "$(ranks)" = $'0/4 n1\n1/4 n1\n2/4 n2\n3/4 n2' ]
    [ ! -e lost ]
  done
}

@test "ranks know how many CPUs a task was asked for, as tasks of srun do" {
  local launcher
  for launcher in $(launchers); do
    job "$launcher" 'echo "rank $RANK $(hostname) ${SLURM_CPUS_PER_TASK-none}"'
    batch job -N2 --ntasks-per-node=2 --cpus-per-task=3
    expect_status 0
    [ "$(ranks)" = $'0 n1 3\n1 n1 3\n2 n2 3\n3 n2 3' ]
    batch job -N2 --ntasks-per-node=1
    [ "$(ranks)" = $'0 n1 none\n1 n2 none' ]
  done
}

@test "Open MPI's variables say what MPI finds, under each PMI and launcher" {
  command -v mpirun > /dev/null || skip "mpirun is not installed"
  [ -x "$build/tests/mpi_identity" ] || skip "this build has no MPI"
  local how
  for how in --launcher=srun --launcher=mpirun; do
    script mpi "ddlrun $how $build/tests/mpi_identity"
    batch mpi -N2 --gres=gpu:2
    expect_status 0
    [ "$(grep '^mpi ' <<< "$output" | sort)" = "mpi 0/4 variables 0/4 0/2 sum 6
mpi 1/4 variables 1/4 1/2 sum 6
mpi 2/4 variables 2/4 0/2 sum 6
mpi 3/4 variables 3/4 1/2 sum 6" ]
  done
  # Without a PMI each is a world of its own, or none, and nothing says otherwise.
  script mpi "ddlrun --launcher=local --oversubscribe -n 2 $build/tests/mpi_identity"
  batch mpi -N1 --gres=gpu:2
  expect_status 0
  [ "$(grep '^mpi ' <<< "$output")" = $'mpi 0/1 variables -/- -/- sum 0\nmpi 0/1 variables -/- -/- sum 0' ]
  script mpi 'ddlrun --pmi=none sh -c "echo rank \$RANK \${OMPI_COMM_WORLD_RANK-unset}"'
  batch mpi -N1 --gres=gpu:2
  [ "$(ranks)" = $'0 unset\n1 unset' ]
}

@test "Open MPI finds out that it is alone whatever the variables of a rank say" {
  [ -x "$build/tests/mpi_identity" ] || skip "this build has no MPI"
  run hpc env OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=4 \
    "$build/tests/mpi_identity"
  expect_status 0
  [[ $output == *"mpi 0/1 variables 1/4 1/4 sum 0"* ]]
}

@test "gradients are summed over nodes without Open MPI's component han, unless the user wants it" {
  [ -x "$build/tests/mpi_identity" ] || skip "this build has no MPI"
  local variable priority
  for variable in OMPI_MCA_coll_base_verbose=20 OMPI_MCA_coll_han_priority=77; do
    script job "export OMPI_MCA_coll_base_verbose=20 $variable" \
      'ddlrun ddltraind --mode=training_benchmark --backend=cpu --arch=resnet_tiny --image_size=32 --batch_size=2 --classes=10 --iter_unit=batch --num_iter=1 --warmup_steps=0'
    batch job -N2 --gres=gpu:2
    priority=$(sed -n 's/.*component available: han, priority: //p' <<< "$output" | sort -u)
    echo "$variable: '$priority'; $(tail -n 3 <<< "$output")"
    [ "$status" -eq 0 ]
    # Open MPI 4.0 has no such component, and others may call theirs otherwise.
    [[ $(mpirun --version) == *" 4.1."* || $(mpirun --version) == *" 5."* ]] || [ -n "$priority" ] || continue
    [ "$priority" = "$([[ $variable == *=77 ]] && echo 77 || echo 0)" ]
  done
}

@test "standard input is that of rank 0 over two components of a heterogeneous job, too" {
  seq 100000 > input
  script input "ddlrun sh -c 'cat > got\$RANK; echo rank \$RANK' < input"
  batch input -N1 --gres=gpu:1 : -N1 --gres=gpu:1
  expect_status 0
  cmp input got0
  [ ! -s got1 ]
}

@test "on shared nodes each rank plans by the GPUs of its own node" {
  # Somebody else has the first GPU of the second node.
  run hpc sbatch --parsable -N1 --nodelist=n2 --gres=gpu:1 --wrap="sleep 120"
  local other=$output
  wait_for 20 is_running "$other"
  # The shim, which is started anew with what it has planned, writes down what it is told.
  cp -r "$cluster_dir/opt" opt
  mv opt/libexec/ddlrun/ddlrun-rank opt/libexec/ddlrun/real
  printf '%s\n' '#!/bin/sh' "echo \"\$DDLRUN_RANK_JOB\" >> '$work'/told.\$SLURM_PROCID" 'exec "$0.real" "$@"' > opt/libexec/ddlrun/ddlrun-rank
  mv opt/libexec/ddlrun/real opt/libexec/ddlrun/ddlrun-rank.real
  ln -s ddlrun-rank-check opt/libexec/ddlrun/ddlrun-rank.real-check
  chmod 755 opt/libexec/ddlrun/ddlrun-rank
  script shared "$work/opt/bin/ddlrun sh -c 'echo rank \$RANK \$SLURM_STEP_GPUS'"
  batch shared -N2 --gres=gpu:1
  echo "$output"
  hpc scancel "$other"
  [ "$status" -eq 0 ]
  [ "$(ranks)" = $'0 0\n1 1' ]
  # Rank 1 is told of the GPU of the first node, and plans again.
  [ "$(sort -u told.1 | wc -l)" -eq 2 ]
  [ "$(wc -l < told.0)" -eq 1 ]
}

@test "CPUs of a task are cores where Slurm counts cores, and hardware threads where it counts those" {
  # Slurm's nodes have 8 CPUs.
  local machine cores
  for machine in "core:8 pu:2=0-1 2-3" "core:4 pu:2=0 1"; do
    script smt "HWLOC_SYNTHETIC='pack:1 ${machine%%=*}' ddlrun --dry-run=json true"
    batch smt -N1 --ntasks-per-node=2 --cpus-per-task=2
    expect_status 0
    cores=$(sed -n '/^{/,$p' <<< "$output" | jq -r '.ranks[].cores' | tr '\n' ' ')
    [ "$cores" = "${machine#*=} " ]
  done
  script smt "HWLOC_SYNTHETIC='pack:1 core:8 pu:2' ddlrun --cpus-per-rank 2 --dry-run=json true"
  batch smt -N1 --ntasks-per-node=2 --cpus-per-task=4
  [ "$(sed -n '/^{/,$p' <<< "$output" | jq -r '.ranks[].cores' | tr '\n' ' ')" = "0 1 " ]
}

@test "--gpu-visibility=rank: each rank sees its own GPU of those that Slurm gave to the node" {
  local launcher
  for launcher in $(launchers); do
    script visible "ddlrun --launcher=$launcher --gpu-visibility=rank sh -c 'echo rank \$RANK \$(hostname) \$CUDA_VISIBLE_DEVICES \$DDLRUN_GPU_VISIBILITY'"
    batch visible -N2 --gres=gpu:2
    expect_status 0
    [ "$(ranks)" = $'0 n1 0 rank\n1 n1 1 rank\n2 n2 0 rank\n3 n2 1 rank' ]
  done
}
