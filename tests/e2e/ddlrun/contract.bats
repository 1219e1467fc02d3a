#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What ddlrun promises whatever starts the ranks: each test runs under each launcher that is here, on one node. tests/cluster/contract.bats
# runs this file in a job of Slurm.

load common

teardown() {
  [ ! -e pid ] || kill -KILL "$(cat pid)" 2> /dev/null || :
  require_no_run_directory
}

# by LAUNCHER ARGUMENT...: ddlrun with two ranks by this launcher.
by() {
  run_ddlrun -n 2 --oversubscribe --launcher="$1" "${@:2}"
  echo "$1: exit code $status"$'\n'"$output"$'\n'"$messages"
}

# start_by LAUNCHER RANKS SCRIPT [OPTION...]: ddlrun with ranks whose script writes ./pid$RANK.new; $ddlrun_pid is its process.
start_by() {
  rm -f pid?
  "$ddlrun" -n "$2" --oversubscribe --launcher="$1" "${@:4}" bash -c "$3" > output 2> messages 3>&- &
  ddlrun_pid=$!
  local rank
  for ((rank = 0; rank < $2; rank++)); do wait_for 20 test -s "pid$rank"; done
}

readonly tells_pid='echo $$ > pid$RANK.new; mv pid$RANK.new pid$RANK; '

# ends_with CODE: ddlrun ends within 20 s with this code, and the processes of ./pid* with it.
ends_with() {
  local code=0
  wait_for 20 have_ended "$ddlrun_pid" || {
    kill -KILL "$ddlrun_pid"
    return 1
  }
  wait "$ddlrun_pid" || code=$?
  cat output messages
  [ "$code" -eq "$1" ]
  have_ended $(cat pid?)
}

@test "every rank knows itself and its launcher" {
  for launcher in $(launchers); do
    by "$launcher" sh -c 'echo "$RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $HOROVOD_RANK $DDLRUN_LAUNCHER $DDLRUN_SPAWNER $DDL_HOST_PORT"'
    [ "$status" -eq 0 ]
    [ "$(sort <<< "$output")" = "0/2 0/2 0 $launcher $launcher 2200"$'\n'"1/2 1/2 1 $launcher $launcher 2200" ]
  done
}

@test "ranks are bound by the shim" {
  [ "$(nproc)" -ge 2 ] || skip "needs two cores"
  for launcher in $(launchers); do
    expect=0 run_ddlrun -n 2 --launcher="$launcher" sh -c 'taskset -pc $$ | sed "s/.*: //"'
    [ "${lines[0]}" != "${lines[1]}" ]
  done
}

@test "variables with any value arrive, and arguments as they were given" {
  for launcher in $(launchers); do
    ODD=$'a;b,c "d" e\nf' by "$launcher" -x ODD -x 'MORE=1;2,3' sh -c '{ printf "%s|%s|" "$ODD" "$MORE"; printf "<%s>" "$@"; } > got$RANK' sh 'a b' '' "it's" '$HOME' $'new\nline' '*' : ::
    [ "$status" -eq 0 ]
    cmp got0 <(printf %s $'a;b,c "d" e\nf|1;2,3|<a b><><it\'s><$HOME><new\nline><*><:><::>')
    cmp got0 got1
  done
}

@test "standard input is that of rank 0; the others find it empty" {
  for launcher in $(launchers); do
    # Hydra dies of what a pipe does not hold, 64 KiB, without ddlrun too; the mpirun of Open MPI 4.1 in one of a hundred runs.
    seq "$([ "$launcher" = hydra ] && echo 10000 || echo 50000)" > input
    by "$launcher" sh -c 'md5sum > got$RANK' < input
    [[ $messages != *"mpirun was ended by signal 11"* ]] || by "$launcher" sh -c 'md5sum > got$RANK' < input
    [ "$status" -eq 0 ]
    cmp got0 <(md5sum < input)
    cmp got1 <(md5sum < /dev/null)
  done
}

@test "the exit code is that of the first rank that failed, named last" {
  for launcher in $(launchers); do
    expect=3 by "$launcher" sh -c 'if [ $RANK = 1 ]; then echo "no data" >&2; exit 3; fi; exec sleep 60'
    [[ $messages == *"no data"*"ddlrun: [ERROR DDL-20-1] the job failed: rank 1 on $(hostname) (pid "*") ended first, with exit code 3, "*" s after the start" ]]
    expect=139 by "$launcher" sh -c '[ $RANK = 1 ] && kill -SEGV $$; exec sleep 60'
    [[ $messages == *"the job failed: rank 1 on "*" ended first, with signal 11 (Segmentation fault), "*" s after the start" ]]
    expect=75 by "$launcher" sh -c 'exit 75'
    [[ $messages == *"start it again"* ]]
  done
}

@test "kill -9 of a rank ends the others, also those that ignore SIGTERM, and leaves no process" {
  for launcher in $(launchers); do
    start_by "$launcher" 2 "trap '' TERM; sleep 600 & $tells_pid wait"
    workers=$(pgrep -d' ' -P "$(cat pid0 pid1 | paste -sd,)")
    kill -KILL "$(cat pid1)"
    ends_with 137
    wait_for 10 have_ended $workers
    [[ $(tail -n 1 messages) == *"rank 1 on "*" ended first, with signal 9 (Killed), "* ]]
  done
}

@test "a program that cannot be started is named with host and rank, 69" {
  for launcher in $(launchers); do
    expect=69 by "$launcher" no-such-program
    [[ $messages == *"ddlrun-rank: [ERROR DDL-20-69] rank "[01]" on $(hostname): cannot start 'no-such-program': No such file or directory"* ]]
  done
}

@test "signals reach the ranks, and their exit code comes back" {
  for launcher in $(launchers); do
    for signal in TERM HUP USR1; do
      start_by "$launcher" 2 "trap 'exit 75' TERM HUP; trap 'exit 0' USR1; $tells_pid while :; do sleep 0.05; done"
      kill -$signal "$ddlrun_pid"
      ends_with "$([ $signal = USR1 ] && echo 0 || echo 75)"
    done
  done
}

@test "kill -9 of ddlrun leaves no rank, no child of a rank and no run directory" {
  for launcher in $(launchers); do
    start_by "$launcher" 2 'sleep 600 & echo "$$ $!" > "pid$RANK.new"; mv "pid$RANK.new" "pid$RANK"; wait'
    kill -KILL "$ddlrun_pid"
    wait_for 20 have_ended $(cat pid0 pid1)
    wait_for 10 no_run_directory
  done
}

@test "a script whose interpreter is missing is told from one that is missing itself" {
  printf '#!/no/such/shell -e\n' > script
  printf '#!/bin/sh\r\necho x\r\n' > windows
  chmod +x script windows
  for launcher in $(launchers); do
    expect=69 run_ddlrun -n 1 --launcher="$launcher" ./script
    [[ $messages == *"cannot start './script': the file is there, but not its interpreter /no/such/shell"* ]]
    run_ddlrun -n 1 --launcher="$launcher" "$PWD/windows"
    [[ $messages == *"cannot start '$PWD/windows': the file is there, but its first line ends as under Windows: sed -i 's/\r\$//' $PWD/windows"* ]]
    run_ddlrun -n 1 --launcher="$launcher" windows
    [[ $messages == *"cannot start 'windows': No such file or directory in PATH; that of this directory is ./windows"* ]]
    run_ddlrun -n 1 --launcher="$launcher" ./missing
    [[ $messages == *"cannot start './missing': No such file or directory"* ]]
    [[ $messages != *"file is there"* ]]
  done
}

@test "of programs beside ddlrun that are not in PATH its own are started, others named with their path" {
  PATH=/usr/bin:/bin
  for launcher in $(launchers); do
    run_ddlrun -n 1 --launcher="$launcher" ddl-rankfile expand 'n[1-2]'
    [ "$output" = $'n1\nn2' ]
    expect=69 run_ddlrun -n 1 --launcher="$launcher" bede-ddlrun --version
    [[ $messages == *"cannot start 'bede-ddlrun': No such file or directory in PATH; that of this installation is $DDLRUN_BUILD/bin/bede-ddlrun"* ]]
  done
}

@test "the log of a rank is what it has written, byte for byte, by every launcher" {
  head -c 300000 /dev/urandom > noise
  for launcher in $(launchers); do
    for program in 'printf "1%%\r2%%\r"' 'head -c 200000 /dev/zero | tr "\0" x; echo' 'cat noise' 'printf "no end"' 'printf "a\n\nb"'; do
      rm -rf logs
      expect=0 run_ddlrun -n 1 --launcher="$launcher" --log-dir logs sh -c "$program"
      sh -c "$program" | cmp - logs/rank-*
    done
  done
}

@test "what a rank writes is seen at once, without a line end, too" {
  for launcher in $(launchers); do
    [ "$launcher" != srun ] || continue # which passes whole lines on
    rm -f shown
    # The report of the shim comes first: where both come at once, Open MPI 5 may show the start of a line on the other stream
    # (https://github.com/openpmix/openpmix/issues/3858). It holds it until the line ends, which loses nothing.
    "$ddlrun" -n 1 --launcher="$launcher" sh -c 'sleep 0.5; printf "loading... "; until [ -e shown.seen ]; do sleep 0.1; done; echo done' > shown 2> messages 3>&- &
    if [[ $launcher != mpirun || $(mpirun --version) != *"(Open MPI) "[5-9]* ]]; then
      wait_for 10 grep -q 'loading' shown
    fi
    : > shown.seen
    wait $!
    rm shown.seen
    [ "$(cat shown)" = "loading... done" ]
  done
}

@test "a run directory that is removed meanwhile costs the log, and neither the exit code nor a restart" {
  # In the place of what cleans /tmp: systemd-tmpfiles, or the epilog of another job on this node.
  printf '%s\n' '[ "$RANK" != 0 ] || rm -rf "$TMPDIR"/ddlrun.*' 'sleep 0.2' 'exit "$1"' > rank
  local launcher code
  for launcher in $(launchers); do
    for code in 0 75 9; do
      expect=$code run_ddlrun -n 1 --launcher="$launcher" sh rank "$code"
      [[ $messages == *"/ddlrun.log: No such file or directory; that log lacks the end of this run"* ]]
      [ "$code" -ne 9 ] || [[ ${messages##*$'\n'} == *"the job failed: rank 0 "*"with exit code 9"* ]]
    done
    expect=0 run_ddlrun -n 1 --launcher="$launcher" --max-restarts 1 sh -c 'sh rank $((9 * (1 - DDLRUN_RESTART_COUNT)))'
  done
}
