#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Programs of PyTorch and mpi4py by each launcher, on all and on some nodes of a job: every rank is where the others look for it.

# shellcheck disable=SC2016 # the job's shell expands, not ours
# shellcheck disable=SC2154 # set by bats and common.bash

load common

setup_file() { part=launcher start_cluster 3 2 8; }
teardown_file() { stop_cluster; }
setup() { empty_home; }

needs() { # MODULE PACKAGE SET-OF-BOOTSTRAP
  /usr/bin/python3 -c "import $1" 2> /dev/null || skip "Python's $1 is not installed: $2, which tools/bootstrap $3 gets"
}

# launches PROGRAM TABLE: each launch of the table in one job of three nodes with two GPUs each, and what its ranks have to say.
# A row: options of ddlrun | the host of each rank
launches() {
  cp "$BATS_TEST_DIRNAME/frameworks.py" .
  local options hosts host rank size
  : > wanted
  : > rows
  while IFS='|' read -r options hosts; do
    options=$(xargs <<< "$options")
    echo "$options" >> rows
    echo "with $options" >> wanted
    size=$(wc -w <<< "$hosts") rank=0
    for host in $hosts; do echo "rank $((rank++))/$size on $host, sum $((size * (size + 1) / 2))"; done >> wanted
  done < <(grep '|' <<< "$2")
  script job 'while read -r options; do echo "with $options"' \
    "  timeout --foreground -k 5 60 ddlrun \$options $1 < /dev/null > launch.out 2> launch.err || { echo \"exit code \$?\"; cat launch.out launch.err; }" \
    '  grep "^rank " launch.out | sort -V' 'done < rows'
  limit=240 batch job -N3 --gres=gpu:2
  diff wanted job.out
}

@test "mpi4py" {
  needs mpi4py python3-mpi4py check
  command -v mpirun > /dev/null || skip "mpirun is not installed"
  launches '/usr/bin/python3 frameworks.py mpi' '
--launcher=srun                                    | n1 n1 n2 n2 n3 n3
--launcher=srun   -H n2,n1                         | n2 n2 n1 n1
--launcher=srun   -H n2,n3                         | n2 n2 n3 n3
--launcher=srun   -H n3:1,n2:2                     | n3 n2 n2
--launcher=srun   --spare-nodes 1 --max-restarts 1 | n1 n1 n2 n2
--launcher=srun   -n 4                             | n1 n1 n2 n2
--launcher=srun   --rank-order=cyclic -H n3,n1     | n3 n1 n3 n1
--launcher=srun   --ranks-per-node 1 -H n3,n2,n1   | n3 n2 n1
--launcher=mpirun                                  | n1 n1 n2 n2 n3 n3
--launcher=mpirun -H n2,n1                         | n2 n2 n1 n1
--launcher=mpirun -H n2,n3                         | n2 n2 n3 n3
--launcher=mpirun -H n3:1,n2:2                     | n3 n2 n2
--launcher=mpirun -n 4                             | n1 n1 n2 n2
--launcher=mpirun --rank-order=cyclic -H n3,n1     | n3 n1 n3 n1
--launcher=mpirun --ranks-per-node 1 -H n3,n2,n1   | n3 n2 n1'
}

@test "PyTorch" {
  needs torch python3-torch check
  local mpirun=
  ! command -v mpirun > /dev/null || mpirun='--launcher=mpirun -H n3:1,n2:1 | n3 n2'
  launches '/usr/bin/python3 frameworks.py torch' "
--launcher=srun -H n2:1,n1:1            | n2 n1
--launcher=srun --pmi=none -H n3:1,n2:2 | n3 n2 n2
$mpirun"
}
