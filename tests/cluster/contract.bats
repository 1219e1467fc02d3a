#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What ddlrun promises whatever starts the ranks, in jobs of a real Slurm: tests/e2e/ddlrun/contract.bats on one node of a job, and that
# each rank of each launcher is on its node, with its environment, GPUs and input, over several.

# shellcheck disable=SC2016 # the ranks' shells expand, not ours
# shellcheck disable=SC2154 # set by bats and common.bash

load common

setup_file() { start_cluster 3 4 8; }
teardown_file() { stop_cluster; }
setup() { empty_home; }

launchers() {
  echo srun
  ! command -v mpirun > /dev/null || echo mpirun
  ! command -v mpiexec.hydra > /dev/null || echo hydra
}

# Who ran where, in order: rank, host name of the node, host of the plan, local rank, GPUs that it sees.
ranks() { sed -n 's/^rank //p' <<< "$output" | sort -n; }

@test "what holds for each launcher on one machine holds in a job" {
  cp -r "$BATS_TEST_DIRNAME/../e2e" "$BATS_TEST_DIRNAME/../wait_for.bash" .
  script contract "cd e2e/ddlrun && DDLRUN_BUILD=$cluster_dir/opt LAUNCHERS='$(launchers | tr '\n' ' ')' bats contract.bats"
  limit=400 batch contract -N1 --gres=gpu:2
  expect_status 0
}

@test "every rank is on the node of the plan, and sees its GPUs" {
  local launcher
  for launcher in $(launchers); do
    script job "ddlrun --launcher=$launcher "'"$@" sh -c "echo rank \$RANK \$(hostname) \$DDLRUN_HOST \$LOCAL_RANK/\$LOCAL_WORLD_SIZE \$CUDA_VISIBLE_DEVICES"'
    batch job -N2 --gres=gpu:2
    expect_status 0
    [ "$(ranks)" = $'0 n1 n1 0/2 0,1\n1 n1 n1 1/2 0,1\n2 n2 n2 0/2 0,1\n3 n2 n2 1/2 0,1' ]
    batch job -N2 --gpus=6
    expect_status 0
    [ "$(ranks | cut -d' ' -f2-5 | tr '\n' ' ')" = "n1 n1 0/4 0,1,2,3 n1 n1 1/4 0,1,2,3 n1 n1 2/4 0,1,2,3 n1 n1 3/4 0,1,2,3 n2 n2 0/2 0,1 n2 n2 1/2 0,1 " ]
    sed -i "s/=$launcher /=$launcher --rank-order=cyclic /" job
    batch job --nodelist=n1,n3 --gres=gpu:2
    expect_status 0
    [ "$(ranks)" = $'0 n1 n1 0/2 0,1\n1 n3 n3 0/2 0,1\n2 n1 n1 1/2 0,1\n3 n3 n3 1/2 0,1' ]
  done
}

@test "the environment of the batch script is that of the ranks, and standard input that of rank 0" {
  seq 10000 > input # Hydra dies of what a pipe does not hold, 64 KiB, without ddlrun too
  local launcher
  for launcher in $(launchers); do
    script job 'export ANSWER="4 2"' "ddlrun --launcher=$launcher -x ASKED=yes sh -c 'echo rank \$RANK \$ANSWER \$ASKED \$VIRTUAL_ENV \$PWD; cat > got\$RANK' < input"
    batch job -N2 --gres=gpu:1 --export=ALL,VIRTUAL_ENV=/opt/venv
    echo "$output"
    [ "$(ranks)" = "0 4 2 yes /opt/venv $work"$'\n'"1 4 2 yes /opt/venv $work" ]
    cmp input got0
    [ ! -s got1 ]
    rm got0 got1
  done
}

@test "a rank that is killed on another node ends the job there too" {
  local launcher
  for launcher in $(launchers); do
    script job "ddlrun --launcher=$launcher sh -c '[ \$RANK = 0 ] || { sleep 1; kill -KILL \$\$; }; exec sleep 600'"
    batch job -N2 --gres=gpu:1
    expect_status 137
    [[ $output == *"rank 1 on n2 (pid "*") ended first, with signal 9 (Killed), "* ]]
    wait_for 20 nothing_left_on n2
  done
}

@test "ranks of MPICH are one world over the nodes" {
  command -v mpicc.mpich > /dev/null || skip "mpicc of MPICH is not installed"
  cat > world.c << 'END'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char** argv) {
  int rank, size, sum;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("rank %d of %d, sum %d\n", rank, size, sum);
  fflush(stdout);
  if (argc > 1 && rank == 1) MPI_Abort(MPI_COMM_WORLD, 3);
  if (argc > 1) for (;;) {}
  MPI_Finalize();
}
END
  mpicc.mpich world.c -o world
  chmod a+rx world
  script job 'ddlrun --launcher=hydra ./world'
  batch job -N2 --gres=gpu:2
  expect_status 0
  [ "$(ranks)" = $'0 of 4, sum 6\n1 of 4, sum 6\n2 of 4, sum 6\n3 of 4, sum 6' ]
  script job 'ddlrun --launcher=hydra ./world abort'
  batch job -N2 --gres=gpu:1
  expect_status 3
}

@test "an order of nodes that Hydra cannot keep in a job is refused" {
  command -v mpiexec.hydra > /dev/null || skip "mpiexec.hydra is not installed"
  script job 'ddlrun --launcher=hydra -H n2,n1 true'
  batch job -N2 --gres=gpu:1
  expect_status 78
  [[ $output == *"Hydra places ranks in the order of its nodes alone"* ]]
}
