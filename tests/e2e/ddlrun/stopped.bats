#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Ranks that are stopped: an order to stop ends them too, and who is stopped for long is named.

# shellcheck disable=SC2016 # the ranks' shells expand, not ours
# shellcheck disable=SC2154 # common.bash sets it

load common

teardown() {
  [ ! -e pid ] || kill -KILL "$(cat pid)" 2> /dev/null || :
  require_no_run_directory
}

# start LAUNCHER SCRIPT: ddlrun with one rank, whose script writes ./pid; $ddlrun_pid is its process.
start() {
  rm -f pid
  "$ddlrun" -n 1 --launcher="$1" bash -c "$2" > output 2> messages 3>&- &
  ddlrun_pid=$!
  wait_for 20 test -s pid
}

# is_stopped: the process of ./pid is.
is_stopped() { grep -q '^State:.[Tt]' "/proc/$(cat pid)/status"; }

# ends_within SECONDS CODE: ddlrun ends by then, with that code.
ends_within() {
  local code=0
  wait_for "$1" have_ended "$ddlrun_pid" || {
    kill -KILL "$ddlrun_pid"
    return 1
  }
  wait "$ddlrun_pid" || code=$?
  cat messages
  [ "$code" -eq "$2" ]
  have_ended "$(cat pid)"
}

@test "an order to stop ends a rank that is stopped, by each launcher and each signal" {
  local launcher signal
  for launcher in local mpirun; do
    [ "$launcher" = local ] || command -v mpirun > /dev/null || continue
    for signal in TERM HUP; do
      start $launcher 'echo $$ > pid; exec sleep 300'
      kill -STOP "$(cat pid)"
      wait_for 5 is_stopped
      kill -$signal "$ddlrun_pid"
      ends_within 10 $([ $launcher = mpirun ] || [ $signal = TERM ] && echo 143 || echo 129)
    done
  done
}

@test "a rank that was stopped writes its checkpoint after the order" {
  local launcher
  for launcher in local mpirun; do
    [ "$launcher" = local ] || command -v mpirun > /dev/null || continue
    start $launcher 'trap "sleep 5; echo > written.$DDLRUN_SPAWNER; exit 75" TERM; echo $$ > pid; while :; do sleep 0.1; done'
    kill -STOP "$(cat pid)"
    wait_for 5 is_stopped
    kill -TERM "$ddlrun_pid"
    ends_within 15 75
    [ -e written.$launcher ]
  done
}

@test "what stops again after the order is killed: a program that stops itself, or its worker" {
  local launcher script
  for launcher in local mpirun; do
    [ "$launcher" = local ] || command -v mpirun > /dev/null || continue
    for script in 'trap "while :; do kill -STOP \$\$; done" TERM; echo $$ > pid; while :; do sleep 0.1; done' \
      'trap "kill -TERM \$!" TERM; (trap "while :; do kill -STOP \$BASHPID; done" TERM; echo $BASHPID > pid; while :; do sleep 0.1; done) & while kill -0 $!; do wait; done'; do
      start $launcher "$script"
      kill -TERM "$ddlrun_pid"
      wait_for 10 have_ended "$(cat pid)"
      wait_for 10 have_ended "$ddlrun_pid"
      wait "$ddlrun_pid" || :
      cat messages
    done
  done
}

@test "who is stopped for long is named with its host and process, once" {
  local launcher
  for launcher in local mpirun; do
    [ "$launcher" = local ] || command -v mpirun > /dev/null || continue
    start $launcher 'echo $$ > pid; exec sleep 300'
    kill -STOP "$(cat pid)"
    wait_for 20 grep -q "rank 0 on $(hostname) (pid $(cat pid)) is stopped: by SIGSTOP, by a debugger, or because it asks at the terminal" messages
    sleep 2
    [ "$(grep -c 'is stopped:' messages)" -eq 1 ]
    kill -TERM "$ddlrun_pid"
    ends_within 10 143
  done
}

@test "a rank that asks at the terminal is named, and Ctrl-C ends it" {
  local launcher
  for launcher in local mpirun; do
    [ "$launcher" = local ] || command -v mpirun > /dev/null || continue
    rm -f pid code
    script -qec "$ddlrun -n 1 --launcher=$launcher bash -c 'echo \$\$ > pid; read -r word < /dev/tty; sleep 300' 2> messages; echo \$? > code" /dev/null < <(
      sleep 14
      printf '\003'
      sleep 15
    ) > /dev/null 3>&- &
    wait_for 20 test -s pid
    wait_for 20 grep -q "(pid $(cat pid)) is stopped" messages
    wait_for 20 test -s code
    cat messages
    [ "$(cat code)" -gt 128 ]
    have_ended "$(cat pid)"
  done
}
