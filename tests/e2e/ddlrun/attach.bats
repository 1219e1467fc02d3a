#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# ddlctl attach: a command beside a rank.

load common

setup() {
  ddlrun="$DDLRUN_BUILD/bin/ddlrun"
  ddlctl="$DDLRUN_BUILD/bin/ddlctl"
  enter_test_directory
}

teardown() {
  [ -z "${ddlrun_pid:-}" ] || ! kill "$ddlrun_pid" 2> /dev/null || wait "$ddlrun_pid" || :
  require_no_run_directory
}

# start LAUNCHER COMMAND [OPTION...]: a job of two ranks of sh, each with its process in pid.RANK.
start() {
  "$ddlrun" --launcher="$1" -n 2 --oversubscribe -x "ANSWER=4 2" "${@:3}" sh -c "$2" > out 2> messages 3>&- &
  ddlrun_pid=$!
  wait_for 20 test -s pid.0
  wait_for 20 test -s pid.1
  directory=$(echo "$TMPDIR"/ddlrun.*)
  wait_for 20 test -e "$directory/status"
}

attach() { run_separate "$ddlctl" attach "$directory" "$@"; }

@test "a command runs in the environment and the directory of the rank, with its process, and its exit code counts" {
  mkdir below
  for launcher in $(launchers); do
    rm -f pid.* end
    # The program that counts is that behind the shells.
    start "$launcher" 'cd below; sh -c "echo \$\$ > ../next.$RANK; mv ../next.$RANK ../pid.$RANK; until [ -e ../end ]; do sleep 0.1; done" ; :'
    expect=0 attach 1 sh -c 'echo "$RANK $ANSWER $PWD {rank} {pid} $(realpath /proc/{pid}/cwd)"'
    [ "$output" = "1 4 2 $PWD/below 1 $(cat pid.1) $PWD/below" ]
    expect=7 attach 0 sh -c 'exit 7'
    expect=143 attach 0 sh -c 'kill $$'
    expect=0 attach 0 cat < pid.0
    [ "$output" = "$(cat pid.0)" ]
    SHELL=/bin/sh expect=0 attach 0 <<< 'echo "rank $RANK"'
    [ "$output" = "rank 0" ]
    # 127, which bats warns of.
    expect=1 run_separate sh -c '"$@"; [ $? -ne 127 ]' sh "$ddlctl" attach "$directory" 0 no-such-program
    [[ $messages == *"cannot start 'no-such-program' on "*" in the environment of rank 0: No such file or directory; give its path"* ]]
    expect=64 attach 2 true
    [[ $messages == *"there is no rank 2: the job has ranks 0 to 1"* ]]
    : > end
    wait "$ddlrun_pid"
    expect=69 attach 0 true
    [[ $messages == *"is no run directory of a ddlrun that runs on this node"* ]]
  done
}

@test "misuse of attach is refused" {
  expect=64 run_separate "$ddlctl" attach
  expect=64 run_separate "$ddlctl" attach 12
  [[ $messages == *"RANK is required"* ]]
  expect=64 run_separate "$ddlctl" attach 12 first
  [[ $messages == *"RANK"*"first"* ]]
  expect=69 run_separate "$ddlctl" attach ./no-such-directory 0
}

@test "while somebody is attached the limits of ddlrun wait, also of one who is killed then" {
  for launcher in $(LAUNCHERS='local mpirun' launchers); do
    rm -f pid.* end
    # No rank touches its heartbeat: without ddlctl the job would end 10 s after its start.
    start "$launcher" 'echo $$ > next.$RANK; mv next.$RANK pid.$RANK; until [ -e end ]; do sleep 0.1; done' --heartbeat beat%r --hang-after 1
    "$ddlctl" attach "$directory" 1 sh -c ': > attached; exec sleep 100' 2> /dev/null 3>&- &
    ddlctl_pid=$!
    wait_for 20 test -e attached
    wait_for 20 grep -q "ddlrun: somebody is attached to rank 1 on $(hostname): --hang-after and --end-limit wait until that is over" messages
    sleep 13
    kill -0 "$ddlrun_pid"
    kill -KILL "$ddlctl_pid"
    expect=70 end_of "$ddlrun_pid" messages
    [ "$(grep -c 'somebody is attached' messages)" -eq 1 ]
    ! compgen -G "/dev/shm/ddlrun-attached.$(cat pid.1)" || false
  done
}
