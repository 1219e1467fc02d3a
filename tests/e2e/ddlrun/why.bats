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

# A stand-in for PyTorch's process group of NCCL, without GPUs: its FIFO, which it looks at, and the pickle that it writes at a byte
# (https://docs.pytorch.org/tutorials/unstable/flight_recorder_tutorial.html). Rank $1 has called $2 collectives, the others 1235.
make_recorder() {
  cat > recorder.py << 'END'
import os, pickle, sys, threading, time
rank = int(os.environ["RANK"])
last = int(sys.argv[2]) if rank == int(sys.argv[1]) else 1235
pipe = "%s%d.pipe" % (os.environ["TORCH_NCCL_DEBUG_INFO_PIPE_FILE"], rank)
if os.path.exists(pipe):
    os.unlink(pipe)
os.mkfifo(pipe)
fifo = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

def entry(number):
    return {"record_id": number, "pg_id": 0, "process_group": ("0", "default_pg"), "collective_seq_id": number, "p2p_seq_id": 0,
            "op_id": number, "profiling_name": "nccl:all_reduce", "time_created_ns": 1724779239936775119, "input_sizes": [[3, 4]],
            "input_dtypes": ["Float"], "output_sizes": [[3, 4]], "output_dtypes": ["Float"],
            "state": "completed" if number < last else "started", "time_discovered_started_ns": None,
            "time_discovered_completed_ns": None, "retired": False, "timeout_ms": 600000, "is_p2p": False}

def monitor():
    while True:
        if os.read(fifo, 128):
            with open("%s%d" % (os.environ["TORCH_FR_DUMP_TEMP_FILE"], rank), "wb") as file:
                pickle.dump({"version": "2.10", "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2]"}},
                             "pg_status": {}, "entries": [entry(n) for n in range(max(1, last - 2000), last + 1)]}, file, 2)
        time.sleep(0.2)

threading.Thread(target=monitor, daemon=True).start()
open("ready.%d" % rank, "w").close()
threading.Event().wait()
END
}

# hang_recorded RANK COUNT LAUNCHER [OPTION...]
hang_recorded() {
  rm -f ready.*
  "$ddlrun" --launcher="$3" --oversubscribe -n 3 "${@:4}" python3 recorder.py "$1" "$2" > out 2> err 3>&- &
  ddlrun_pid=$!
  wait_for 30 all_are_ready
  directory=$(echo "$TMPDIR"/ddlrun.*)
  shared=/dev/shm/${directory##*/}
}

@test "what PyTorch has recorded names the rank that is behind, and nothing is left of it" {
  local group='process group 0 (default_pg)'
  make_recorder
  for launcher in $(launchers); do
    hang_recorded 1 1234 "$launcher"
    [ -p "$shared/ddlrun-recorder.1/1.pipe" ]
    [ "$(stat -c %a "$shared/ddlrun-recorder.1")" = 700 ]
    require_says "perhaps rank 1 (*, pid *): *has not started all_reduce number 1235 of $group, which the others have; 2 other ranks wait*"
    "$ddlctl" why -v "$directory" | grep -xF "rank 1: all_reduce number 1234 of $group, started, [[3, 4]] Float"
    "$ddlctl" why --json "$directory" | python3 -c '
import json, sys
why = json.load(sys.stdin)
assert why["cause"] == "outlier" and why["ranks"] == [1] and not why["is_sure"], why
recorded = [rank["recorded"][0]["collectives"][-1]["number"] for node in why["nodes"] for rank in node["ranks"]]
assert recorded == [1235, 1234, 1235], recorded'
    stop
    [ ! -e "$shared" ]
    hang_recorded 1 1235 "$launcher" --log-dir logs
    require_says "all 3 ranks wait in *all_reduce number 1235 of $group: perhaps the network*"
    [ -e logs/ddlrun-recorder.2 ]
    # One rank fails, and the job ends.
    kill -KILL "$("$ddlctl" why --json "$directory" | sed 's/.*"rank":2,.*"pid":\([0-9]*\),.*/\1/')"
    wait "$ddlrun_pid" || :
    [ ! -e "$shared" ]
    rm -r logs
  done
}

@test "where PyTorch records is the choice of who sets it; a program that does not record is not asked" {
  local show='echo "${TORCH_NCCL_DEBUG_INFO_PIPE_FILE-unset} ${TORCH_FR_DUMP_TEMP_FILE-unset}"'
  # shows PATTERN [VARIABLE=VALUE...]
  shows() {
    run -0 --separate-stderr env "${@:2}" "$ddlrun" --launcher=local sh -c "$show"
    # shellcheck disable=SC2053 # it is a pattern
    [[ $output == $1 ]]
  }
  shows '/dev/shm/ddlrun.*/ddlrun-recorder.0/ /dev/shm/ddlrun.*/ddlrun-recorder.0/'
  shows ' unset' TORCH_NCCL_DEBUG_INFO_PIPE_FILE=
  shows '/mine/p /dev/shm/ddlrun.*/ddlrun-recorder.0/' TORCH_NCCL_DEBUG_INFO_PIPE_FILE=/mine/p
  shows '/dev/shm/ddlrun.*/ddlrun-recorder.0/ unset' TORCH_NCCL_DEBUG_INFO_TEMP_FILE=/mine/d
  shows '/mine/p /mine/d' TORCH_NCCL_DEBUG_INFO_PIPE_FILE=/mine/p TORCH_FR_DUMP_TEMP_FILE=/mine/d
  mkdir bin
  printf '#!/bin/sh\nshift 3\nexec "$@"\n' > bin/apptainer
  chmod +x bin/apptainer
  for option in -c --contain -C --containall; do
    run -0 --separate-stderr "$ddlrun" --launcher=local "$PWD/bin/apptainer" exec "$option" image.sif sh -c "$show"
    [ "$output" = 'unset unset' ]
  done
  run -0 --separate-stderr "$ddlrun" --launcher=local "$PWD/bin/apptainer" exec --nv image.sif sh -c "$show"
  [[ $output == */ddlrun-recorder.0/ ]]
  # One's own directory, and another one that is not there.
  make_recorder
  mkdir mine
  TORCH_NCCL_DEBUG_INFO_PIPE_FILE=$PWD/mine/p. TORCH_FR_DUMP_TEMP_FILE=$PWD/mine/d. hang_recorded 0 1233 local
  require_says "perhaps rank 0 (*): *has not started all_reduce number 1234 of *, 2 behind the others; 2 other ranks wait*"
  [ ! -e "$shared" ] && [ -p mine/p.2.pipe ] && [ -s mine/d.2 ]
  stop
  TORCH_NCCL_DEBUG_INFO_PIPE_FILE=$PWD/none/ hang 1 stopped
  require_says "rank 1 (*, pid *): stopped by SIGSTOP *"
  stop
}

@test "before ddlrun ends a job that hangs it says which rank held it up" {
  mkfifo fifo
  for launcher in $(launchers); do
    rm -f socket ready.*
    # Ranks that end by themselves when their heartbeat stops would be a failure of their own.
    run -70 --separate-stderr timeout 100 "$ddlrun" --launcher="$launcher" --oversubscribe -n 3 --heartbeat "beats.$launcher/%r" --hang-after 2 --log-dir logs \
      sh -c 'touch "$DDLRUN_HEARTBEAT"; sleep 1; touch "$DDLRUN_HEARTBEAT"; exec python3 train.py 1 fifo'
    [[ ${stderr_lines[-1]} == *"it hangs: rank "[0-2]" on "*" has not touched "*" (--hang-after); rank 1 ("*", pid "*"): opens the FIFO $PWD/fifo, whose other end nobody opens"*"; 2 other ranks wait "* ]]
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
