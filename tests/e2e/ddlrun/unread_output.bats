#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# ddlrun whose output nobody reads: as after Ctrl-S, or in front of a pager.

load common

setup() {
  ddlrun="$DDLRUN_BUILD/bin/ddlrun"
  enter_test_directory
  mkfifo unread
  exec 7<> unread # so that it can be opened
}

teardown() {
  [ -z "${pid:-}" ] || kill -KILL "$pid" 2> /dev/null || true
  require_no_run_directory
}

# start OPTION...: ddlrun with two ranks that fill the pipe; asked to stop they write a last line and a file.
start() {
  printf '%s\n' 'trap "echo stopping; echo saved > checkpoint.$RANK; exit 75" TERM' \
    'i=0; line=$(printf "%4000s" $RANK)' \
    'while :; do echo "$line"; i=$((i + 1)); [ $i -lt 16 ] || : > "ready.$RANK"; done' > rank
  "$ddlrun" -n 2 --oversubscribe "$@" sh rank > unread 2> messages 3>&- 7>&- &
  pid=$!
  wait_for 20 test -e ready.0
  wait_for 20 test -e ready.1
}

# ddlrun reads no more of the ranks, which are then stopped in write.
has_filled_the_pipe() {
  local before
  before=$(stat -c %Y%y ready.0)
  sleep 0.3
  [ "$before" = "$(stat -c %Y%y ready.0)" ]
}

has_ended() { ! kill -0 "$pid" 2> /dev/null; }

# stop SIGNAL: status and messages of ddlrun then.
stop() {
  kill "-$1" "$pid"
  wait_for 30 has_ended
  status=0
  wait "$pid" || status=$?
  pid=
  cat messages
}

@test "SIGTERM ends ranks that wait for a reader, and their lines are counted" {
  start --launcher=local
  # Ranks wait for the reader: nothing is lost while nobody has asked for the end.
  wait_for 20 has_filled_the_pipe
  stop TERM
  [ "$status" -eq 75 ]
  [ "$(cat checkpoint.0 checkpoint.1)" = $'saved\nsaved' ]
  grep -qE '^ddlrun: [0-9]+ lines of output were dropped: nobody reads standard output$' messages
  run ! grep -q 'standard error' messages
}

@test "the same through mpirun" {
  require_mpirun
  start --launcher=mpirun
  stop TERM
  [ "$status" -eq 75 ]
  [ "$(cat checkpoint.0 checkpoint.1)" = $'saved\nsaved' ]
  grep -qE '^ddlrun: [0-9]+ lines of output were dropped: nobody reads standard output$' messages
}

@test "a failed rank ends the others although nobody reads; what fits is kept for a late reader" {
  printf '%s\n' '[ $RANK = 1 ] || { i=0; while [ $i -lt 9000 ]; do i=$((i+1)); echo "line $i"; done; : > written; sleep 600; }' \
    'while [ ! -e written ]; do sleep 0.05; done; echo $PPID > ddlrun; exit 3' > rank
  "$ddlrun" -n 2 --oversubscribe --launcher=local sh rank > unread 2> messages 3>&- 7>&- &
  pid=$!
  wait_for 30 test -e ddlrun
  head -n 9000 <&7 > received
  wait_for 20 has_ended
  expect=3 end_of "$pid"
  pid=
  [ "$(tail -n 1 received)" = "line 9000" ]
  run ! grep -q dropped messages
}

@test "standard error that nobody reads does not keep ddlrun either" {
  printf '%s\n' 'trap "exit 75" TERM; : > ready; while :; do echo a line of $RANK >&2; done' > rank
  "$ddlrun" -n 1 --launcher=local sh rank > output 2> unread 3>&- 7>&- &
  pid=$!
  wait_for 20 test -e ready
  kill -TERM "$pid"
  wait_for 30 has_ended
  expect=75 end_of "$pid"
  pid=
}

@test "a reader that is slow gets everything" {
  "$ddlrun" -n 1 --launcher=local seq 40000 > unread 2> messages 3>&- 7>&- &
  pid=$!
  sleep 0.5 # the pipe is full now, or soon
  head -n 40000 <&7 > received
  wait "$pid"
  pid=
  cmp received <(seq 40000)
}

# fails_when_told: a job whose rank fails when there is a file "go"; nothing is left of it then but ddlrun's last words.
fails_when_told() {
  printf '%s\n' 'echo $$ > rank.pid; : > ready; while [ ! -e go ]; do sleep 0.05; done; exit 3' > rank
  "$ddlrun" -n 1 --launcher=local sh rank > output 2> unread 3>&- 7>&- &
  pid=$!
  wait_for 20 test -e ready
}

rank_is_gone() { [ ! -e "/proc/$(cat rank.pid)" ]; }

@test "a signal that comes after the end of the ranks does not take the place of the exit code" {
  fails_when_told
  dd if=/dev/zero of=/proc/self/fd/7 oflag=nonblock bs=1 count=1000000 2> /dev/null || true # until it is full
  : > go
  wait_for 20 rank_is_gone
  kill -TERM "$pid"
  wait_for 30 has_ended
  expect=3 end_of "$pid"
  pid=
}

@test "nor is the rank that failed forgotten for a signal that comes while its last output waits" {
  printf '%s\n' 'yes | head -c 200000; echo $$ > rank.pid; exit 3' > rank
  "$ddlrun" -n 1 --launcher=local sh rank > unread 2> messages 3>&- 7>&- &
  pid=$!
  wait_for 20 test -s rank.pid
  wait_for 20 rank_is_gone
  stop TERM
  [ "$status" -eq 3 ]
  grep -q 'ended first, with exit code 3' messages
  run ! grep -q 'stopped by' messages
}

@test "a process that a rank leaves behind, and that writes for ever, does not keep ddlrun with a slow reader" {
  printf '%s\n' 'trap "" HUP; setsid sh -c "echo \$\$ > writer.pid; exec yes" & while [ ! -s writer.pid ]; do sleep 0.05; done' > rank
  "$ddlrun" -n 1 --launcher=local sh rank > unread 2> messages 3>&- 7>&- &
  pid=$!
  # Slower than the writer; it ends although nobody writes any more.
  (while [ ! -e enough ]; do timeout 1 head -c 60000 > /dev/null || :; sleep 0.1; done) <&7 3>&- &
  local reader=$!
  wait_for 60 has_ended || true
  : > enough
  kill -KILL "$(cat writer.pid)" || true
  wait "$reader"
  has_ended
  wait "$pid"
  pid=
}

@test "ranks that were told to stop have their time although the reader goes away, as tee does on Ctrl-C" {
  printf '%s\n' 'trap "echo stopping; sleep 5; echo saved > checkpoint.$RANK; exit 75" TERM' ': > "ready.$RANK"' \
    'while :; do sleep 0.1; done' > rank
  "$ddlrun" -n 2 --oversubscribe --launcher=local sh rank > unread 2> messages 3>&- 7>&- &
  pid=$!
  wait_for 20 test -e ready.0
  wait_for 20 test -e ready.1
  exec 7>&-
  stop TERM
  [ "$status" -eq 75 ]
  [ "$(cat checkpoint.0 checkpoint.1)" = $'saved\nsaved' ]
}

@test "a full disk loses lines, and ends nothing" {
  status=0
  "$ddlrun" -n 1 --launcher=local sh -c 'echo one; echo two; sleep 0.5; : > went_on' > /dev/full 2> messages || status=$?
  cat messages
  [ "$status" -eq 0 ]
  [ -e went_on ]
  grep -qx 'ddlrun: 2 lines of output were dropped: standard output: No space left on device' messages
}

@test "so does a limit of file sizes" {
  status=0
  (ulimit -f 32; exec "$ddlrun" -n 1 --launcher=local sh -c 'head -c 60000 /dev/zero | tr "\0" "\n"; sleep 0.5; : > went_on') > log 2> messages || status=$?
  cat messages
  [ "$status" -eq 0 ]
  [ -e went_on ]
  grep -qx 'ddlrun: [0-9]* lines of output were dropped: standard output: File too large' messages
}

@test "an answer that a full disk has no room for is an error, 71" {
  for question in --help --version --show-config "--dry-run -n 1" "--dry-run=json -n 1"; do
    status=0
    "$ddlrun" --launcher=local $question true > /dev/full 2> messages || status=$?
    cat messages
    [ "$status" -eq 71 ]
    grep -q 'cannot write to the standard output: No space left on device' messages
  done
}

@test "what nobody reads does not keep bede-mpirun after SIGTERM" {
  require_mpirun
  printf '%s\n' 'trap "exit 3" TERM; : > ready; while :; do echo a line >&2; done' > rank
  "$DDLRUN_BUILD/bin/bede-mpirun" -n 1 sh rank > output 2> unread 3>&- 7>&- &
  pid=$!
  wait_for 20 test -e ready
  kill -TERM "$pid"
  wait_for 30 has_ended
  status=0
  wait "$pid" || status=$?
  pid=
  [ "$status" -ne 0 ]
}

@test "nor does a reader of the messages that has gone away" {
  fails_when_told
  exec 7>&-
  : > go
  wait_for 20 has_ended
  expect=3 end_of "$pid"
  pid=
}
