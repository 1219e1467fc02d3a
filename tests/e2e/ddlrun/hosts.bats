#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# One host by several names, and several hosts by one.

load common

@test "this machine by any of its names and addresses needs no mpirun" {
  own=$(python3 -c 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(("192.0.2.1", 9)); print(s.getsockname()[0])' || hostname)
  for host in "$(hostname)" localhost localhost.localdomain 127.0.0.1 127.0.1.1 "$own"; do
    expect=0 run_ddlrun -H "$host:2" --oversubscribe --launcher=local sh -c 'echo "$RANK of $WORLD_SIZE"'
    [ "$(sort <<< "$output")" = "$(printf '0 of 2\n1 of 2')" ]
  done
}

@test "this machine under two names is refused, in -H and in a hostfile" {
  for other in localhost 127.0.0.1 127.0.1.1; do
    expect=64 run_ddlrun -H "$other:1,$(hostname):1" --oversubscribe true
    [[ $messages = *"$other and $(hostname) are both this machine; write one of them"* ]]
    printf '%s\n%s slots=2\n' "$(hostname)" "$other" > hosts
    expect=65 run_ddlrun --hostfile hosts --oversubscribe true
    [[ $messages = *"-hostfile hosts: $(hostname) and $other are both this machine"* ]]
  done
  expect=64 run_ddlrun -H gpu1,gpu1.site.example true
  [[ $messages = *"gpu1 and gpu1.site.example are one host spelled in two ways"* ]]
}

@test "hosts that differ in their domain alone are two for mpirun, too" {
  require_mpirun
  make_agent
  if mpirun_is_prrte; then
    expect=78 run_ddlrun -H worker.a.example:1,worker.b.example:1 --launcher=mpirun true
    [[ $messages == *"mpirun of Open MPI 5 takes worker.a.example and worker.b.example for one host"* ]]
    return
  fi
  run_ddlrun -H worker.a.example:1,worker.b.example:1 --launcher=mpirun --mpiarg "--mca plm_rsh_agent $PWD/agent" sh -c 'echo "$RANK $DDLRUN_HOST $LOCAL_RANK"'
  expect_status 0 "$messages"
  [ "$(sort <<< "$output")" = "$(printf '0 worker.a.example 0\n1 worker.b.example 0')" ]
}

@test "a name that differs from this machine's in its domain is another machine" {
  [[ $(hostname) != *.* ]] || skip "this machine knows its domain"
  for other in "$(hostname).other.example" "$(hostname).example"; do
    expect=78 run_ddlrun -H "$other:1" --launcher=local true
    [[ $messages = *"$other"* ]]
  done
}

@test "addresses of IPv6 are refused as what they are" {
  for host in ::1 '[::1]:2' 'fe80::1%eth0:2' 2001:db8::1 'n1,::1'; do
    expect=64 run_ddlrun -H "$host" true
    [[ $messages = *"addresses of IPv6 cannot be written here: give a name"* ]]
  done
  for line in '::1' '[fe80::1] slots=2' 'fe80::1 slots=2'; do
    printf 'n1 slots=1\n%s\n' "$line" > hosts
    expect=65 run_ddlrun --hostfile hosts true
    [[ $messages = *"hosts:2:1: addresses of IPv6 cannot be written here"* ]]
  done
  printf 'rank 0=fe80::1 slot=0:0\n' > ranks
  expect=65 run_ddlrun --rankfile ranks true
  [[ $messages = *"ranks:1:8: addresses of IPv6 cannot be written here"* ]]
}

# Makes ./bin: all that ranks need, and Open MPI, but neither srun nor ssh, as in a container.
without_srun() {
  mkdir -p bin
  local name
  for name in sh bash env cat sort mpirun orted prterun prted; do
    path=$(command -v "$name") || continue
    ln -sf "$(readlink -f "$path")" "bin/$name"
  done
  search_path=$PWD/bin
}

@test "in a job of Slurm without srun mpirun starts ranks on this node, whatever Slurm calls it" {
  require_mpirun
  without_srun
  export SLURM_JOB_ID=4711 SLURM_JOB_NUM_NODES=1 SLURM_TASKS_PER_NODE=2 SLURM_NTASKS=2
  for name in "$(hostname)" q1-dy-1; do
    export SLURM_JOB_NODELIST=$name SLURM_NODELIST=$name SLURMD_NODENAME=$name
    for launcher in auto mpirun; do
      expect=0 run_ddlrun --launcher=$launcher --accelerators 0 -n 2 --oversubscribe sh -c 'echo "$RANK $OMPI_COMM_WORLD_SIZE $DDLRUN_HOST"'
      [ "$(sort <<< "$output")" = $'0 2 '"$name"$'\n1 2 '"$name" ]
    done
  done
}

@test "in a job of Slurm without srun ranks on other nodes are refused, and the ways out are named" {
  require_mpirun
  without_srun
  export SLURM_JOB_ID=4711 SLURM_JOB_NUM_NODES=2 SLURM_JOB_NODELIST=q1-dy-[1-2] SLURM_NODELIST=q1-dy-[1-2] SLURMD_NODENAME=q1-dy-1 \
    'SLURM_TASKS_PER_NODE=1(x2)'
  for launcher in auto mpirun; do
    expect=69 run_ddlrun --launcher=$launcher --accelerators 0 true
    [[ $messages = *"by srun, which is not in PATH: in a container start ddlrun outside"*"--mpiarg '--mca plm rsh'"* ]]
    [[ $messages != *ORTE* ]]
  done
  make_agent
  run_ddlrun --launcher=mpirun --accelerators 0 --mpiarg "--mca plm rsh --mca plm_rsh_agent $PWD/agent" sh -c 'echo "$RANK $DDLRUN_HOST"'
  echo "$messages"
  [[ $messages != *"by srun, which"* ]]
}

@test "where there is no ssh mpirun starts ranks on this machine all the same" {
  require_mpirun
  mpirun_is_prrte && skip "it does so by itself"
  without_srun
  for job in '' 4711; do
    SLURM_JOB_ID=$job SLURM_JOB_NUM_NODES=1 SLURM_JOB_NODELIST=n7 SLURM_TASKS_PER_NODE=1 run_ddlrun -H "$(hostname):2" --launcher=mpirun --oversubscribe sh -c 'echo "$RANK $OMPI_COMM_WORLD_SIZE"'
    expect_status 0 "$messages"
    [ "$(sort <<< "$output")" = $'0 2\n1 2' ]
  done
}

@test "hosts of PBS and LSF are read, and jobs of Flux are told what to write" {
  printf '%s\n' n1 n1 n2 n2 > nodes
  PBS_JOBID=12 PBS_NODEFILE=$PWD/nodes expect=0 run_ddlrun --dry-run --launcher=mpirun true
  [ "$(sed -nE 's/^([0-9]) +(n[12]) .*/\1 \2/p' <<< "$output$messages")" = $'0 n1\n1 n1\n2 n2\n3 n2' ]
  LSB_JOBID=12 LSB_MCPU_HOSTS="login 1 n1 2 n2 2" expect=0 run_ddlrun --dry-run --launcher=mpirun true
  [ "$(sed -nE 's/^([0-9]) +(n[12]) .*/\1 \2/p' <<< "$output$messages")" = $'0 n1\n1 n1\n2 n2\n3 n2' ]
  PBS_NODEFILE=$PWD/nodes expect=0 run_ddlrun -H localhost:1 sh -c 'echo "$RANK/$WORLD_SIZE"' # what the user says takes precedence
  [ "$output" = 0/1 ]
  FLUX_JOB_ID=f1 FLUX_JOB_NNODES=2 expect=78 run_ddlrun true
  [[ $messages == *'this is a job of Flux on 2 nodes (FLUX_JOB_NNODES)'*'write ddlrun -H "$(flux hostlist local)"'* ]]
}
