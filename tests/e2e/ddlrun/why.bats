#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# ddlctl why: which rank of a job hangs, and why, whatever its program.

load common

setup() {
  ddlrun="$DDLRUN_BUILD/bin/ddlrun"
  ddlctl="$DDLRUN_BUILD/bin/ddlctl"
  enter_test_directory
  command -v python3 > /dev/null || skip "python3 is not installed"
  [ "$(cat /proc/sys/kernel/yama/ptrace_scope 2> /dev/null || echo 0)" = 0 ] || [ "$(id -u)" -eq 0 ] || skip "ptrace is restricted here"
  # All ranks send to rank 0 and wait for its answer; what rank $odd does before is $how.
  cat > train.py << 'END'
import os, socket, sys, time
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])

def all_reduce(peers):
    if rank > 0:
        peers[0].sendall(b"x")
        return peers[0].recv(1)
    for peer in peers:
        peer.recv(1)

def odd(how):
    if how == "asleep":
        time.sleep(1000)
    if how == "fifo":
        open("fifo")
    if how == "child":
        os.system("read line < fifo")
    while how == "computes":
        pass
    if how == "stopped":
        os.kill(os.getpid(), 19)

if rank == 0:
    server = socket.socket(socket.AF_UNIX)
    server.bind("socket")
    server.listen(world)
    peers = [server.accept()[0] for _ in range(world - 1)]
else:
    while not os.path.exists("socket"):
        time.sleep(0.05)
    time.sleep(0.2)
    peers = [socket.socket(socket.AF_UNIX)]
    peers[0].connect("socket")
open("ready.%d" % rank, "w").close()
if rank == int(sys.argv[1]):
    odd(sys.argv[2])
all_reduce(peers)
END
}

teardown() {
  [ -z "${ddlrun_pid:-}" ] || ! kill "$ddlrun_pid" 2> /dev/null || wait "$ddlrun_pid" || :
  require_no_run_directory
}

# hang RANK HOW [LAUNCHER]: a job of three ranks in which that rank does that.
hang() {
  rm -f socket ready.* fifo
  mkfifo fifo
  "$ddlrun" --launcher="${3:-local}" --oversubscribe -n 3 python3 train.py "$1" "$2" > out 2> err 3>&- &
  ddlrun_pid=$!
  wait_for 30 all_are_ready
  directory=$(echo "$TMPDIR"/ddlrun.*)
}

all_are_ready() { [ -e ready.0 ] && [ -e ready.1 ] && [ -e ready.2 ]; }

stop() {
  kill "$ddlrun_pid"
  wait "$ddlrun_pid" || :
  unset ddlrun_pid
}

# says PATTERN: so does ddlctl why, once all have come to rest.
# shellcheck disable=SC2053 # it is a pattern
says() { [[ $("$ddlctl" why "$directory") == $1 ]]; }

# require_says PATTERN
require_says() {
  wait_for 20 says "$1" || {
    "$ddlctl" why -v "$directory"
    return 1
  }
}

@test "the rank that holds up the others is named, and what holds it up" {
  local host
  host=$(uname -n)
  for launcher in $(launchers); do
    hang 1 stopped "$launcher"
    require_says "rank 1 ($host, pid *): stopped by SIGSTOP or a terminal (kill -CONT * continues it); 2 other ranks wait *"
    stop
  done
  hang 2 fifo
  require_says "rank 2 ($host, pid *): opens the FIFO $PWD/fifo, whose other end nobody opens*; 2 other ranks wait *"
  stop
  hang 0 asleep
  require_says "*rank 0 ($host, pid *): asleep (clock_nanosleep)*; 2 other ranks wait *"
  stop
  hang 1 child
  require_says "rank 1 ($host, pid *): its process * (sh) opens the FIFO $PWD/fifo, whose other end nobody opens*; 2 other ranks wait *"
  stop
  hang 2 computes
  require_says "perhaps rank 2 ($host, pid *): computes (* CPUs)*; 2 other ranks wait *"
  stop
}

@test "-v has a row for each rank; --json and the file in the run directory have all facts" {
  hang 1 stopped
  require_says "rank 1 *"
  run "$ddlctl" why -v "$directory"
  expect_status 0
  [[ ${lines[1]} == *"rank host "*" pid state  CPUs what" ]]
  [[ ${lines[3]} == *" 1 $(uname -n) "*" T "*" stopped by SIGSTOP"* ]]
  "$ddlctl" why --json "$directory" | tee why | python3 -c '
import json, sys
why = json.load(sys.stdin)
assert why["cause"] == "stopped" and why["is_sure"] and why["ranks"] == [1], why
assert why["line"].startswith("rank 1 (") and why["pid"] > 1, why
assert [rank["rank"] for rank in why["nodes"][0]["ranks"]] == [0, 1, 2], why'
  cmp why "$directory/why.json"
  [ "$(stat -c %a "$directory/why.json")" = 600 ]
  # As it is asked for on all nodes of a job.
  "$ddlctl" why --facts "$directory" | grep -q "^ddlrun-facts $(uname -n) 0 [1-9]* {.*\"rank\":0,"
}

@test "with py-spy the collective of the others is named" {
  command -v py-spy > /dev/null || skip "py-spy is not in PATH"
  hang 2 asleep
  require_says "rank 2 (*, pid *): asleep (clock_nanosleep) in odd (train.py:*); 2 other ranks wait in all_reduce (train.py:*)"
}

@test "before ddlrun ends a job that hangs it says which rank held it up" {
  mkfifo fifo
  for launcher in $(launchers); do
    rm -f socket ready.*
    # Ranks that end by themselves when their heartbeat stops would be a failure of their own.
    run -70 --separate-stderr timeout 100 "$ddlrun" --launcher="$launcher" --oversubscribe -n 3 --heartbeat "beats.$launcher/%r" --hang-after 2 --log-dir logs \
      sh -c 'touch "$DDLRUN_HEARTBEAT"; sleep 1; touch "$DDLRUN_HEARTBEAT"; exec python3 train.py 1 fifo'
    [[ ${stderr_lines[-1]} == *"it hangs: rank "[0-2]" on "*" has not touched "*" (--hang-after); rank 1 ("*", pid "*"): opens the FIFO $PWD/fifo, whose other end nobody opens; 2 other ranks wait "* ]]
    grep -q '"cause":"opens"' logs/why.json
    rm -r logs
  done
}

@test "an end that hangs names the rank that does not end, and what it does" {
  run -69 --separate-stderr timeout 100 "$ddlrun" --launcher=local --oversubscribe -n 2 --end-limit 1 sh -c '[ $RANK = 0 ] || exec sleep 1000'
  [[ ${stderr_lines[-1]} == *"its end hung: rank 1 on "*" (--end-limit); "*"rank 1 ("*", pid "*"): asleep (clock_nanosleep)"* ]]
}

@test "what ddlctl why cannot take is an error" {
  run -64 --separate-stderr "$ddlctl" why
  [[ $stderr == *"JOB is required"* ]]
  run -64 --separate-stderr "$ddlctl" why --srun=perhaps 12
  [[ $stderr == *"--srun"*"perhaps"* ]]
  run -69 --separate-stderr "$ddlctl" why .
  [[ $stderr == "ddlctl: . is no run directory of a ddlrun that runs on this node: give the number of the job in Slurm, or what DDLRUN_RUN_DIR is in ranks on its node" ]]
  run -69 --separate-stderr "$ddlctl" why --srun=never 123456
  [ "$stderr" = "ddlctl: no rank of 123456 that runs was found" ]
}
