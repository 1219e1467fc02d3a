#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# ddlrun --launcher=mpirun in jobs of a real Slurm: mpirun starts its daemons by srun.

# shellcheck disable=SC2016 # the ranks' shells expand, not ours
# shellcheck disable=SC2154 # set by bats and common.bash

load common

setup_file() {
  command -v mpirun > /dev/null || skip_all "mpirun is not installed" || return 0
  CLUSTER_SLURM_CONF=SlurmdTimeout=15 start_cluster 3 4 8
}
teardown_file() { stop_cluster; }
setup() {
  empty_home
  script job 'ddlrun --launcher=mpirun "$@" sh -c "echo rank \$RANK \$(hostname) \$DDLRUN_HOST \$LOCAL_RANK/\$LOCAL_WORLD_SIZE \$CUDA_VISIBLE_DEVICES"'
}

# Who ran where, in order: rank, host name of the node, host of the plan, local rank, GPUs that it sees.
ranks() { sed -n 's/^rank //p' <<< "$output" | sort -n; }

@test "all GPUs of exclusive nodes, whatever the job asks for" {
  local four=$'0 n1 n1 0/4 0,1,2,3\n1 n1 n1 1/4 0,1,2,3\n2 n1 n1 2/4 0,1,2,3\n3 n1 n1 3/4 0,1,2,3'
  four+=$'\n4 n2 n2 0/4 0,1,2,3\n5 n2 n2 1/4 0,1,2,3\n6 n2 n2 2/4 0,1,2,3\n7 n2 n2 3/4 0,1,2,3'
  batch job -N2 --gres=gpu:1 --exclusive
  expect_status 0
  [ "$(ranks)" = "$four" ]
  batch job -N2 --exclusive
  expect_status 0
  [ "$(ranks)" = "$four" ]
}

@test "a part of the hosts, other orders and two launches at once: each rank on the node that it is told" {
  script job 'launch() { ddlrun --launcher=mpirun "$@" sh -c "echo rank \$RANK \$(hostname) \$DDLRUN_HOST \$LOCAL_RANK/\$LOCAL_WORLD_SIZE \$OMPI_COMM_WORLD_RANK" | sort; }' \
    'while read -r options; do echo "$options"; launch $options < /dev/null; done < options' \
    'launch -H n2,n1 > first & launch -H n3 > second; wait; echo at once; cat first second'
  printf '%s\n' '-H n2,n3' '-H n3' '-H n3,n2' '-H n3:2,n1:1' '-H n3,n1,n2' '--rank-order=cyclic -H n3,n2' '--rank-order=cyclic -H n2,n1' > options
  batch job -N3 --gres=gpu:2
  expect_status 0
  printf '%s\n' '-H n2,n3' 'rank 0 n2 n2 0/2 0' 'rank 1 n2 n2 1/2 1' 'rank 2 n3 n3 0/2 2' 'rank 3 n3 n3 1/2 3' \
    '-H n3' 'rank 0 n3 n3 0/2 0' 'rank 1 n3 n3 1/2 1' \
    '-H n3,n2' 'rank 0 n3 n3 0/2 0' 'rank 1 n3 n3 1/2 1' 'rank 2 n2 n2 0/2 2' 'rank 3 n2 n2 1/2 3' \
    '-H n3:2,n1:1' 'rank 0 n3 n3 0/2 0' 'rank 1 n3 n3 1/2 1' 'rank 2 n1 n1 0/1 2' \
    '-H n3,n1,n2' 'rank 0 n3 n3 0/2 0' 'rank 1 n3 n3 1/2 1' 'rank 2 n1 n1 0/2 2' 'rank 3 n1 n1 1/2 3' 'rank 4 n2 n2 0/2 4' 'rank 5 n2 n2 1/2 5' \
    '--rank-order=cyclic -H n3,n2' 'rank 0 n3 n3 0/2 0' 'rank 1 n2 n2 0/2 1' 'rank 2 n3 n3 1/2 2' 'rank 3 n2 n2 1/2 3' \
    '--rank-order=cyclic -H n2,n1' 'rank 0 n2 n2 0/2 0' 'rank 1 n1 n1 0/2 1' 'rank 2 n2 n2 1/2 2' 'rank 3 n1 n1 1/2 3' \
    'at once' 'rank 0 n2 n2 0/2 0' 'rank 1 n2 n2 1/2 1' 'rank 2 n1 n1 0/2 2' 'rank 3 n1 n1 1/2 3' \
    'rank 0 n3 n3 0/2 0' 'rank 1 n3 n3 1/2 1' > expected
  grep -E '^(rank|-|at once)' job.out | diff expected -
}

@test "a rankfile of the user that names a part of the hosts; a part of them in the shell of salloc" {
  printf '%s\n' 'rank 0=n3 slot=0' 'rank 1=n2 slot=0' 'rank 2=n3 slot=0' > ranks
  script job 'ddlrun --rankfile ranks sh -c "echo rank \$RANK \$(hostname) \$DDLRUN_HOST \$LOCAL_RANK/\$LOCAL_WORLD_SIZE \$OMPI_COMM_WORLD_RANK"'
  batch job -N3 --gres=gpu:2
  expect_status 0
  [ "$(ranks)" = $'0 n3 n3 0/2 0\n1 n2 n2 0/1 1\n2 n3 n3 1/2 2' ]
  run hpc salloc --quiet -N3 --gres=gpu:2 ddlrun --launcher=mpirun -H n2 sh -c 'echo rank $RANK $(hostname) $DDLRUN_HOST'
  expect_status 0
  [ "$(ranks)" = $'0 n2 n2\n1 n2 n2' ]
}

@test "in a heterogeneous job the daemons are in the component of their nodes" {
  batch job -N1 --gres=gpu:1 : -N2 --gres=gpu:2
  expect_status 0
  [ "$(ranks)" = $'0 n1 n1 0/1 0\n1 n2 n2 0/2 0,1\n2 n2 n2 1/2 0,1\n3 n3 n3 0/2 0,1\n4 n3 n3 1/2 0,1' ]
  batch job -N1 --gres=gpu:1 : -N1 --gres=gpu:1 : -N1 --gres=gpu:1
  [ "$status" -eq 78 ]
  [[ $output == *"n2 and n3 are in two: use --launcher=srun, or name hosts of one by -H"* ]]
}

@test "a rank that mpirun starts on another node than planned is refused, and its program does not start" {
  # Its srun is told no nodes, and takes the first ones of the job.
  mkdir bin
  printf '%s\n' '#!/bin/bash' 'unset OMPI_MCA_plm_slurm_args' 'words=()' \
    'while [ $# -gt 0 ]; do' '  [ "$1 $2" != "--prtemca plm_slurm_args" ] || { shift 3; continue; }' '  words+=("$1")' '  shift' 'done' \
    'exec /usr/bin/mpirun "${words[@]}"' > bin/mpirun
  chmod +x bin/mpirun
  script job 'PATH=$PWD/bin:$PATH ddlrun --launcher=mpirun -H n2,n3 sh -c "echo rank \$RANK has started"'
  batch job -N3 --gres=gpu:1
  expect_status 78
  [[ $output == *"rank 0 runs on n1, the plan says n2; take options that place ranks out of --mpiarg"* ]]
  [[ $output != *"rank 0 has started"* ]]
}

@test "a job whose environment sbatch --export has chosen hands its own on all the same" {
  script job "export PATH=$cluster_dir/opt/bin:\$PATH WORD=known" 'ddlrun --launcher=mpirun sh -c "echo rank \$RANK \$(hostname) \$WORD"'
  batch job -N2 --gres=gpu:1 --export=NONE
  expect_status 0
  [ "$(ranks)" = $'0 n1 known\n1 n2 known' ]
}

all_idle() { [ "$(cluster in sinfo -h -N -o %t | sort -u)" = idle ]; }

@test "a node that is powered off is named, and the job ends on the others" {
  script rank ': > "ready.$RANK"' 'exec sleep 300'
  script job 'ddlrun --launcher=mpirun ./rank; echo "exit code $?"'
  hpc sbatch --quiet --no-kill --no-requeue -N2 --gres=gpu:1 --output="$work/job.out" job
  wait_for 30 test -e ready.0
  wait_for 30 test -e ready.1
  cluster kill n2
  wait_for 90 grep -q '^exit code [1-9]' job.out || cat job.out
  cat job.out
  grep -q '^ddlrun: .*the job failed: node n2 was lost' job.out
  wait_for 10 nothing_left_on n1
  cluster boot n2
  wait_for 60 all_idle
}
