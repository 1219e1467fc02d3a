#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# ddlrun --check and --check-only: looking at the nodes before ranks start.

load common

# The file that the check makes is gone.
no_probe() { ! compgen -G "$BATS_TEST_TMPDIR/.ddlrun-check.*" > /dev/null; }

@test "--check-only prints a verdict for every check and starts nothing" {
  expect=0 run_ddlrun --check-only -n 1 touch started
  for check in nodes hardware gpus gpu-use gpu-errors gpu-links infiniband memlock shm users directory master-addr clocks versions connections; do
    grep -qE "^$check +(ok|warn|not known) +[^ ]" <<< "$output"
  done
  [ ! -e started ]
  no_probe
}

@test "a file that a check left which was killed is removed by a check an hour later" {
  touch .ddlrun-check.AAAAAA .ddlrun-check.BBBBBB
  touch -d '2 hours ago' .ddlrun-check.AAAAAA
  expect=0 run_ddlrun --check-only -n 1
  [ ! -e .ddlrun-check.AAAAAA ]
  [ -e .ddlrun-check.BBBBBB ]
}

@test "--check=full looks first, then starts the ranks" {
  expect=0 run_ddlrun --check=full -n 1 echo hello
  [ "$output" = hello ]
  [[ $messages == *"ddlrun-node-check --limit "*$'\n'"directory    ok         $PWD on 1 node, "* ]]
  no_probe
}

@test "nothing is looked at without --check=full" {
  run_ddlrun -n 1 true
  [[ $messages != *node-check* ]]
  run_ddlrun --check=off -n 1 true
  [[ $messages != *node-check* ]]
}

@test "a check that fails is 78, and no rank is started" {
  # Nobody, root included, makes files in /proc.
  cd /proc
  expect=78 run_ddlrun --check=full -n 1 touch "$BATS_TEST_TMPDIR/started"
  [[ $messages == *"directory    fail       /proc cannot be written: "*": start from a directory that all nodes share"* ]]
  [[ $messages == *"[ERROR DDL-20-78] a check failed, no rank was started"* ]]
  [ ! -e "$BATS_TEST_TMPDIR/started" ]
  expect=78 run_ddlrun --check-only -n 1
  expect=0 run_ddlrun --check=auto -n 1 touch "$BATS_TEST_TMPDIR/started"
  [ -e "$BATS_TEST_TMPDIR/started" ]
}

@test "a value that --check does not know is refused" {
  expect=64 run_ddlrun --check=some -n 1 true
  [[ $messages == *"'some' is not auto or full or off"* ]]
}

@test "the site file may ask for the checks" {
  echo 'check: full' > site.yaml
  run_ddlrun --site ./site.yaml -n 1 true
  [[ $messages == *$'\n'"nodes        ok         1 node answered"* ]]
}

@test "MASTER_ADDR that a node does not find is a warning, with what to give instead" {
  # No name server is asked for a name with a part of more than 63 bytes.
  name=$(printf 'n%.0s' {1..64})
  warning=" is not found: "*" ("*"): ranks that meet there, "*"-x MASTER_ADDR=ADDRESS"
  expect=0 run_ddlrun --check=full -n 1 -x MASTER_ADDR="$name" sh -c 'echo "$MASTER_ADDR"'
  [ "$output" = "$name" ]
  [[ $messages == *$'\n'"master-addr  warn       MASTER_ADDR=$name"$warning* ]]
  MASTER_ADDR=$name expect=0 run_ddlrun --check-only -n 1
  [[ $output == *$'\n'"master-addr  warn       MASTER_ADDR=$name"$warning* ]]
  run_ddlrun --check-only -n 1
  [[ $output == *$'\n'"master-addr  ok         MASTER_ADDR=127.0.0.1 is found on 1 node"* ]]
}

@test "every node looks up the address of rank 0" {
  require_mpirun
  make_agent
  printf '%s\n' 'rank 0=n2 slot=0' 'rank 1=127.0.0.1 slot=0' > rankfile
  run_ddlrun --check-only -H 127.0.0.1,n2 --rankfile rankfile --oversubscribe --mpiarg "--mca plm_rsh_agent $PWD/agent"
  echo "$output $messages"
  [[ $output == *$'\n'"master-addr  warn       MASTER_ADDR=n2 is not found: "*" (n2,127.0.0.1): "* ]]
}

@test "mpirun's nodes meet: clocks are compared, every pair talks" {
  require_mpirun
  make_agent
  expect=0 run_ddlrun --check-only -H n1:2,n2:2,n3:2 --oversubscribe --mpiarg "--mca plm_rsh_agent $PWD/agent"
  grep -qE "^nodes +warn +one machine answered for several hosts: $(hostname) \(n\[1-3\]\): " <<< "$output"
  if grep -q 'built without' <<< "$output"; then skip "this build has no PMIx or no UCX"; fi
  grep -qE '^clocks +ok +in step within ' <<< "$output"
  grep -qE '^connections +ok +3 pairs of 3 nodes talk, the slowest n[1-3] with n[1-3] in ' <<< "$output"
  no_probe
}

@test "a pair that cannot talk has a fabric to be blamed" {
  require_mpirun
  make_agent
  # Shared memory alone, which UCX does not use between what may die: no way from node to node.
  UCX_TLS=self run_ddlrun --check-only -H n1,n2 --mpiarg "--mca plm_rsh_agent $PWD/agent"
  if grep -q 'built without' <<< "$output"; then skip "this build has no PMIx or no UCX"; fi
  [ "$status" -eq 78 ]
  grep -qE '^connections +fail +do not reach each other: n1 with n2 \(' <<< "$output"
  no_probe
}

@test "a node that does not answer is named, and what the launcher said is shown" {
  cat > mpirun <<'SH'
#!/bin/sh
[ "$1" != --version ] || exec echo "mpirun (Open MPI) 4.1.4"
echo "no daemon on n2" >&2
exit 1
SH
  chmod +x mpirun
  search_path="$PWD:$PATH" expect=78 run_ddlrun --check-only -H n1,n2
  [[ $output == *"nodes        fail       no answer from n[1-2]; the launcher ended with exit code 1: "*"| no daemon on n2"* ]]
}

@test "a signal ends the check, and nothing is left" {
  # A node that never answers.
  printf '#!/bin/sh\n[ "$1" != --version ] || exec echo "mpirun (Open MPI) 4.1.4"\necho > "%s/waiting"\nexec sleep 600\n' "$PWD" > mpirun
  chmod +x mpirun
  PATH="$PWD:$PATH" "$ddlrun" --check=full -n 2 --oversubscribe --launcher=mpirun touch started 2> messages 3>&- &
  local pid=$!
  wait_for 10 test -e waiting
  run ! no_probe
  kill -TERM "$pid"
  expect=143 end_of "$pid"
  grep -q 'stopped by signal 15' messages
  [ ! -e started ]
  no_probe
}

@test "kill -9 of ddlrun during the check leaves nothing" {
  printf '#!/bin/sh\n[ "$1" != --version ] || exec echo "mpirun (Open MPI) 4.1.4"\necho $$ > "%s/waiting.new"; mv "%s/waiting.new" "%s/waiting"\nexec sleep 600\n' "$PWD" "$PWD" "$PWD" > mpirun
  chmod +x mpirun
  PATH="$PWD:$PATH" "$ddlrun" --check=full -n 2 --oversubscribe --launcher=mpirun true 2> messages 3>&- &
  local pid=$!
  wait_for 10 test -e waiting
  kill -KILL "$pid"
  wait_for 15 have_ended "$(cat waiting)"
  wait_for 15 no_probe
  wait_for 15 no_run_directory
}

@test "a node's check does not wait for a node that never comes" {
  require_mpirun
  # Two processes in PMIx's eyes, one of which has better things to do.
  run --separate-stderr timeout 20 mpirun --allow-run-as-root --oversubscribe -n 2 sh -c '
    [ "$OMPI_COMM_WORLD_RANK" = 0 ] || exec sleep 4
    DDLRUN_NODE_COUNT=2 exec "$0" --limit 5 --link-limit 1' "$DDLRUN_BUILD/libexec/ddlrun/ddlrun-node-check"
  if grep -q '"pmix":""' <<< "$output"; then skip "this build has no PMIx"; fi
  [ "$status" -ne 124 ]
  [[ $output == *"not all nodes came to the exchange in time"* ]]
}

@test "PMIx and UCX that are not there are named, and the rest of the check is done" {
  require_mpirun
  unshare -m true 2> /dev/null || skip "no mount namespace can be made here"
  local library
  for library in PMIx:libpmix.so.2 UCX:libucp.so.0; do
    # As on nodes without it: whatever has its name there is no library.
    printf '#!/bin/sh\nfor file in $(ldconfig -p | sed -n "s/.*=> \\(.*%s\\)$/\\1/p"); do mount --bind /dev/null "$(realpath "$file")"; done\nexec "$@"\n' \
      "${library#*:}" > without
    chmod +x without
    run --separate-stderr mpirun --allow-run-as-root --oversubscribe -n 2 sh -c \
      'DDLRUN_NODE_COUNT=2 DDLRUN_NODE_RANK=$OMPI_COMM_WORLD_RANK exec unshare -m "$@"' - ./without "$DDLRUN_BUILD/libexec/ddlrun/ddlrun-node-check"
    echo "$output"
    [[ $output != *"was built without ${library%:*}"* ]] || skip "this build has none"
    [ "$status" -eq 0 ]
    [[ $output == *"\"unavailable\":\"${library%:*} cannot be loaded: "*"${library#*:}: "* ]]
    [[ $output == *'"free_bytes":'[1-9]* ]]
  done
}

@test "a node's check refuses what it does not know" {
  run -64 "$DDLRUN_BUILD/libexec/ddlrun/ddlrun-node-check" --limit 0
  run -64 "$DDLRUN_BUILD/libexec/ddlrun/ddlrun-node-check" --what
}

@test "a driver that does not answer is named, and the rest of the check is done" {
  echo '#include <unistd.h>
int nvmlInit_v2(void) { for (;;) pause(); }' > hang.c
  mkdir lib
  cc -shared -fPIC -o lib/libnvidia-ml.so.1 hang.c
  LD_LIBRARY_PATH=$PWD/lib expect=78 run_ddlrun --check-only -n 1 --accelerators 1 -H localhost:1
  grep -E '^gpus +fail +1 planned, but the NVIDIA driver has not answered for 10 s \(NVML\)' <<< "$output"
  grep -E '^directory +ok ' <<< "$output"
}
