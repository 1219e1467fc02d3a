#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Ranks that are stopped: an order to stop ends them too, and who is stopped for long is named.

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
  for launcher in $(launchers); do
    for signal in TERM HUP; do
      start $launcher 'echo $$ > pid; exec sleep 300'
      kill -STOP "$(cat pid)"
      wait_for 5 is_stopped
      kill -$signal "$ddlrun_pid"
      ends_within 10 $([ $launcher = local ] && [ $signal = HUP ] && echo 129 || echo 143)
    done
  done
}

@test "a rank that was stopped writes its checkpoint after the order" {
  for launcher in $(launchers); do
    start $launcher 'trap "sleep 5; echo > written.$DDLRUN_LAUNCHER; exit 75" TERM; echo $$ > pid; while :; do sleep 0.1; done'
    kill -STOP "$(cat pid)"
    wait_for 5 is_stopped
    kill -TERM "$ddlrun_pid"
    ends_within 15 75
    [ -e written.$launcher ]
  done
}

@test "what stops again after the order is killed: a program that stops itself, or its worker" {
  for launcher in $(launchers); do
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
  for launcher in $(launchers); do
    start $launcher 'echo $$ > pid; exec sleep 300'
    kill -STOP "$(cat pid)"
    wait_for 20 grep -q "rank 0 on $(hostname) (pid $(cat pid)) is stopped: by SIGSTOP or by a debugger; kill -CONT $(cat pid) there continues it" messages
    sleep 2
    [ "$(grep -c 'is stopped: ' messages)" -eq 1 ]
    kill -TERM "$ddlrun_pid"
    ends_within 10 143
  done
}

# at_terminal SCRIPT: a shell with job control runs it at a terminal of its own. ./shown is what it shows; what is written to descriptor 9 is
# typed there.
at_terminal() {
  printf '%s\n' "$1" > at_terminal.sh
  rm -f keys shown
  mkfifo keys
  env --default-signal=INT,QUIT script -qec 'bash -m at_terminal.sh' /dev/null < keys > shown 2>&1 3>&- &
  terminal_pid=$!
  exec 9> keys
}

# closes_within SECONDS: the shell at the terminal has ended by then.
closes_within() {
  wait_for "$1" have_ended "$terminal_pid" || {
    pkill -KILL -s "$terminal_pid" || :
    cat shown
    return 1
  }
  exec 9>&-
  wait "$terminal_pid" || :
  cat shown
}

@test "a rank that asks at the terminal hears at once that it has none" {
  for launcher in $(LAUNCHERS='local mpirun' launchers); do
    for program in 'read -r word < /dev/tty' '(bash -c "read -r word < /dev/tty")' 'echo word > /dev/tty' 'stty -F /dev/tty' \
      'python3 -c "import getpass; getpass.getpass()"'; do
      printf '%s\n' "$program" > ask
      at_terminal "$ddlrun -n 1 --launcher=$launcher bash ask; echo \$? > code"
      closes_within 10
      [ "$(cat code)" -eq 1 ]
      grep -Eq 'No such device or address|EOFError' shown
      ! grep -q 'is stopped' shown
    done
  done
}

@test "Ctrl-C at the terminal ends ranks that have none" {
  for launcher in $(LAUNCHERS='local mpirun' launchers); do
    rm -f pid
    at_terminal "$ddlrun -n 1 --launcher=$launcher bash -c 'echo \$\$ > pid; exec sleep 300'; echo \$? > code"
    wait_for 20 test -s pid
    printf '\003' >&9
    closes_within 10
    [ "$(cat code)" -gt 128 ]
    have_ended "$(cat pid)"
  done
}

@test "Ctrl-Z stops the ranks and ddlrun, and fg has all go on, as often as one likes" {
  for launcher in $(LAUNCHERS='local mpirun' launchers); do
    rm -f pid go go2
    at_terminal "$ddlrun -n 2 --oversubscribe --launcher=$launcher --heartbeat beat --hang-after 3 bash -c '
      [ \$RANK = 1 ] || echo \$\$ > pid
      until [ -e end ]; do touch beat; sleep 0.1; done'
      echo stopped \$?; until [ -e go ]; do sleep 0.1; done; fg; echo stopped \$?; until [ -e go2 ]; do sleep 0.1; done; fg; echo \$? > code"
    wait_for 20 test -s pid
    printf '\032' >&9
    wait_for 10 grep -q 'stopped 148' shown
    wait_for 10 is_stopped # mpirun passes it on when it comes to it
    sleep 4 # longer than the heartbeat may be silent
    is_stopped
    : > go
    wait_for 10 eval '! is_stopped'
    sleep 1
    printf '\032' >&9
    wait_for 10 is_stopped
    : > go2
    wait_for 10 eval '! is_stopped'
    : > end
    closes_within 20
    rm end
    [ "$(cat code)" -eq 0 ]
  done
}

@test "a job that was told to stop is not held up by Ctrl-Z" {
  at_terminal "$ddlrun -n 1 --launcher=local bash -c 'trap \"sleep 1; exit 75\" TERM INT; echo \$\$ > pid; while :; do sleep 0.1; done'; echo \$? > code"
  wait_for 20 test -s pid
  printf '\003' >&9
  sleep 0.3
  printf '\032' >&9
  closes_within 10
  [ "$(cat code)" -eq 75 ]
}
