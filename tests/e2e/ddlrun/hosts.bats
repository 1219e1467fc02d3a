#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# One host by several names, and several hosts by one.

# shellcheck disable=SC2016 # the ranks' shells expand, not ours
# shellcheck disable=SC2154 # common.bash sets them

load common

@test "this machine by any of its names and addresses needs no mpirun" {
  own=$(python3 -c 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(("192.0.2.1", 9)); print(s.getsockname()[0])' || hostname)
  for host in "$(hostname)" localhost localhost.localdomain 127.0.0.1 127.0.1.1 "$own"; do
    run_ddlrun -H "$host:2" --oversubscribe --launcher=local sh -c 'echo "$RANK of $WORLD_SIZE"'
    echo "$host: $messages"
    [ "$status" -eq 0 ]
    [ "$(sort <<< "$output")" = "$(printf '0 of 2\n1 of 2')" ]
  done
}

@test "this machine under two names is refused, in -H and in a hostfile" {
  for other in localhost 127.0.0.1 127.0.1.1; do
    run_ddlrun -H "$other:1,$(hostname):1" --oversubscribe true
    echo "$messages"
    [ "$status" -eq 64 ]
    [[ $messages = *"$other and $(hostname) are both this machine; write one of them"* ]]
    printf '%s\n%s slots=2\n' "$(hostname)" "$other" > hosts
    run_ddlrun --hostfile hosts --oversubscribe true
    [ "$status" -eq 65 ]
    [[ $messages = *"-hostfile hosts: $(hostname) and $other are both this machine"* ]]
  done
  run_ddlrun -H gpu1,gpu1.site.example true
  [ "$status" -eq 64 ]
  [[ $messages = *"gpu1 and gpu1.site.example are one host spelled in two ways"* ]]
}

@test "hosts that differ in their domain alone are two for mpirun, too" {
  require_mpirun
  make_agent
  if mpirun_is_prrte; then
    run_ddlrun -H worker.a.example:1,worker.b.example:1 --launcher=mpirun true
    [ "$status" -eq 78 ]
    [[ $messages == *"mpirun of Open MPI 5 takes worker.a.example and worker.b.example for one host"* ]]
    return
  fi
  run_ddlrun -H worker.a.example:1,worker.b.example:1 --launcher=mpirun --mpiarg "--mca plm_rsh_agent $PWD/agent" sh -c 'echo "$RANK $DDLRUN_HOST $LOCAL_RANK"'
  echo "$messages"
  [ "$status" -eq 0 ]
  [ "$(sort <<< "$output")" = "$(printf '0 worker.a.example 0\n1 worker.b.example 0')" ]
}
