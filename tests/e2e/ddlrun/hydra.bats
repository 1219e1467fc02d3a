#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# ddlrun with the hydra launcher: mpiexec of MPICH. What all launchers have in common is in contract.bats.

load common

setup() {
  command -v mpiexec.hydra > /dev/null || skip "mpiexec.hydra is not installed"
  ddlrun="$DDLRUN_BUILD/bin/ddlrun"
  enter_test_directory
}

# run_on_two ARGUMENT...: ddlrun on two hosts that are this machine.
run_on_two() {
  printf '#!/bin/sh\n[ "$1" != -x ] || shift\nexport AGENT_HOST="$1"\nshift\nexec sh -c "$*"\n' > agent # instead of ssh
  chmod +x agent
  HYDRA_LAUNCHER_EXEC="$PWD/agent" run_ddlrun --launcher=hydra "$@"
  echo "$output"$'\n'"$messages"
}

@test "ranks of MPICH are one world, and MPI_Abort's exit code is that of the job" {
  command -v mpicc.mpich > /dev/null || skip "mpicc of MPICH is not installed"
  cat > world.c << 'END'
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char** argv) {
  int rank, size, sum;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("rank %d of %d, sum %d\n", rank, size, sum);
  fflush(stdout);
  if (argc > 1 && rank == 1) MPI_Abort(MPI_COMM_WORLD, 3);
  if (argc > 1) pause();
  MPI_Finalize();
}
END
  mpicc.mpich world.c -o world
  expect=0 run_ddlrun --launcher=hydra -n 3 --oversubscribe ./world
  [ "$(sort <<< "$output")" = $'rank 0 of 3, sum 3\nrank 1 of 3, sum 3\nrank 2 of 3, sum 3' ]
  expect=3 run_ddlrun --launcher=hydra -n 3 --oversubscribe ./world abort
  # What MPI_Abort prints may be lost, since Hydra kills all at once: in 2 of 60 runs of mpiexec.hydra alone (MPICH 4.0.2).
  [[ $messages == *"the job failed: rank 1 on $(hostname) ended first, with exit code 3, "* ||
    $messages == *"the job failed: mpiexec ended by itself, with exit code 3, and no rank is known to have failed"* ]]
  wait_for 5 eval '! pgrep -x world'
}

@test "ranks on two hosts are on those of the plan in any order, with their environment" {
  for order in '-H n1:2,n2:2' '-H n2:2,n1:2' '-H n1:2,n2:2 --rank-order=cyclic' '-H n1:2,n2:1 --rank-order=cyclic'; do
    MINE='x y' expect=0 run_on_two $order --oversubscribe sh -c 'echo "$RANK $DDLRUN_HOST $AGENT_HOST $MINE"'
    case $order in
      '-H n1:2,n2:2') expected='n1 n1 n2 n2' ;;
      '-H n2:2,n1:2') expected='n2 n2 n1 n1' ;;
      *n2:2*) expected='n1 n2 n1 n2' ;;
      *) expected='n1 n2 n1' ;;
    esac
    local rank=0 host
    for host in $expected; do
      grep -qx "$rank $host $host x y" <<< "$output"
      rank=$((rank + 1))
    done
  done
}

@test "the right mpiexec is found among others, and none at all is refused" {
  printf '#!/bin/sh\necho "mpirun (Open MPI) 4.1.4"\n' > mpirun
  cp mpirun mpiexec
  chmod +x mpirun mpiexec
  search_path="$PWD:$PATH" run_ddlrun --launcher=hydra -n 1 --dry-run true
  [[ $output == *"+ $(command -v mpiexec.hydra) "* ]]
  # Intel's mpirun is a script, which a signal for the ranks would end.
  mkdir intel
  printf '#!/bin/sh\necho "Intel(R) MPI Library for Linux* OS, Version 2021.10 Build 20230619"\n' > intel/mpirun
  cp intel/mpirun intel/mpiexec.hydra
  chmod +x intel/*
  search_path="$PWD/intel:$PATH" run_ddlrun --launcher=hydra -n 1 --dry-run true
  [[ $output == *"+ $PWD/intel/mpiexec.hydra "* ]]
  search_path="$PWD/intel:$PATH" run_ddlrun -n 2 --oversubscribe --dry-run true
  [[ $output == *"+ $PWD/intel/mpiexec.hydra "* ]]
  search_path="$PWD" expect=69 run_ddlrun --launcher=hydra -n 1 /bin/true
  [[ $messages == *"neither mpirun nor mpiexec nor mpiexec.hydra is that of MPICH, MVAPICH or Intel MPI"* ]]
}

@test "--tag-output says whose line it is; SIGUSR2, of which mpiexec would die, is not passed on" {
  run_ddlrun --launcher=hydra -n 2 --oversubscribe --tag-output echo hi
  [ "$(sort <<< "$output")" = $'[0] hi\n[1] hi' ]
  [[ $messages != *'[0] '* ]]
  "$ddlrun" --launcher=hydra -n 1 sh -c ': > ready; until [ -e end ]; do sleep 0.1; done' 2> messages 3>&- &
  wait_for 10 test -e ready
  kill -USR2 $!
  wait_for 10 grep -q 'mpiexec passes no SIGUSR2 on to the ranks' messages
  : > end
  wait $!
}

@test "ddltraind, of Open MPI, trains on one node, and says that it cannot over several" {
  [ -x "$DDLRUN_BUILD/bin/ddltraind" ] || skip "ddltraind is not built"
  local small="--arch=resnet_tiny --num_iter=2 --iter_unit=batch --batch_size=2 --mode=train --image_size=32 --classes=10"
  expect=0 run_ddlrun --launcher=hydra -n 2 --oversubscribe "$DDLRUN_BUILD/bin/ddltraind" $small --results_dir=results
  expect=69 run_on_two -H n1:1,n2:1 "$DDLRUN_BUILD/bin/ddltraind" $small --results_dir=other
  [[ $messages == *"ddltraind is of Open MPI"* ]]
}
