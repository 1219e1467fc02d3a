#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What a run has cost: the last lines of ddlrun, its files, ddlctl history and ddlctl status.

load common

costs() { run_separate "$DDLRUN_BUILD/bin/ddlctl" history "$@"; }

# value FILE|- KEY: of the JSON.
value() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$1" "$2"; }

# A program of two ranks that has a checkpoint after 0.6 s, and of which rank 1 fails 0.4 s later as often as $1 says.
works() { echo "sleep 0.6; [ \$RANK = 1 ] || echo > checkpoint; sleep 0.4; [ \$RANK = 0 ] || [ \$DDLRUN_RESTART_COUNT -ge $1 ] || exit 3; sleep 0.2"; }

@test "three failures: the parts add up to the wall time, and each is what was caused" {
  local start wall
  start=$EPOCHREALTIME
  expect=0 run_ddlrun -n 2 --oversubscribe --launcher=local --max-restarts 3 --progress-file checkpoint --log-dir logs --metrics-dir metrics \
    sh -c "$(works 3)"
  wall="$EPOCHREALTIME - $start"
  [[ ${messages##*$'\n'} == "ddlrun: wall time "*" s, goodput "*" %: start "*" s, productive "*" s, lost "*" s ("*"repeated "*"), end "*" s" ]]
  [ "$(ls logs)" = "$(printf '%s\n' rank-00000.log rank-00001.log "$(basename logs/run-*.json)")" ]
  python3 - "$wall" logs/run-*.json << 'END'
import json, sys
wall, run = eval(sys.argv[1]), json.load(open(sys.argv[2]))
parts = {name: run[name + "_seconds"] for name in
         ("plan", "launch", "productive", "unknown", "detection", "teardown", "restart", "repeated", "requeued", "end")}
print(run, wall)
assert abs(sum(parts.values()) - run["wall_seconds"]) <= 0.01 * run["wall_seconds"]
# What the shell and the loader of the program take is not ddlrun's.
assert 0 <= wall - run["wall_seconds"] <= 0.01 * wall + 1
assert run["restarts"] == 3 and run["exit_code"] == 0 and run["progress"] == "checkpoints"
# 3 x 0.6 s until the checkpoint, then 1.2 s; 3 x 0.4 s after it.
assert 2.9 <= parts["productive"] <= 9, parts
assert 1.1 <= parts["repeated"] <= 5, parts
assert abs(run["goodput"] - parts["productive"] / run["wall_seconds"]) < 0.01
END
  ! command -v promtool > /dev/null || promtool check metrics < metrics/ddlrun-*.prom
  python3 "$BATS_TEST_DIRNAME/../ddltraind/read_logs.py" metrics metrics/ddlrun-*.prom > values
  grep -q '^ddlrun_running{.*launch="20.*} 0.0$' values
  grep -q '^ddlrun_lost_seconds{.*cause="repeated"} [1-9]' values
  expect=0 costs logs
  [[ $output == "start "*" lost by"$'\n'????-??-??T*" -  "*" % "*" 0 "*"repeated "* ]]
  [ "${#lines[@]}" -eq 2 ]
}

@test "a hang: the time until it was noticed is lost, and so is the teardown" {
  expect=70 run_ddlrun -n 1 --launcher=local --heartbeat beat --hang-after 1 --progress-file checkpoint --metrics-dir metrics -v \
    sh -c 'trap "" TERM; for i in 1 2 3 4; do sleep 0.1; echo > beat; echo > checkpoint; done; sleep 30; sleep 30'
  [[ $messages == *"ddlrun: wall time "*"(detection "*"teardown "*"ddlrun: "*"it hangs: "* ]]
  local file
  file=$(echo metrics/run-*.json)
  python3 -c 'import sys; assert 0.8 <= float(sys.argv[1]) <= 5 and 2.5 <= float(sys.argv[2]) and float(sys.argv[3]) <= 3, sys.argv' \
    "$(value "$file" detection_seconds)" "$(value "$file" teardown_seconds)" "$(value "$file" productive_seconds)"
}

@test "without a file that tells progress it says so, with -v or after a restart alone" {
  expect=0 run_ddlrun -n 1 --launcher=local true
  [[ $messages != *"wall time"* ]]
  expect=3 run_ddlrun -n 1 --launcher=local --max-restarts 1 sh -c 'exit 3'
  [[ $messages == *"wall time "*", lost 2."*" s (restart 2."*"; productive time is not known: give --progress-file"$'\n'*"ended first, with exit code 3"* ]]
  expect=0 run_ddlrun -n 1 --launcher=local -v --log-dir logs true
  [[ $messages == *"wall time "*": start "*", running 0."* ]]
  [ "$(value logs/run-*.json goodput)" = None ]
  expect=0 costs logs
  [[ $output == *" not known "* ]]
}

@test "a ddlrun that is killed: what was written stays, and what was not saved is lost; ddlctl status has the cost" {
  mkdir runs
  "$ddlrun" -n 1 --launcher=local --progress-file checkpoint --log-dir logs --run-dir runs sh -c "echo > checkpoint; exec sleep 60" > /dev/null 2>&1 3>&- &
  local pid=$!
  wait_for 20 eval 'compgen -G "logs/run-*.json" > /dev/null && compgen -G "runs/*/status" > /dev/null'
  wait_for 20 grep -qsE '^cost checkpoints 0 [1-9]' runs/*/status
  run_separate "$DDLRUN_BUILD/bin/ddlctl" status runs/*
  [[ $output == *"cost           wall time "*", goodput "* ]]
  run_separate "$DDLRUN_BUILD/bin/ddlctl" status --json runs/*
  [[ $output == *'"cost":{"progress":"checkpoints","restarts":0,'* ]]
  expect=0 costs logs
  [[ ${lines[1]} == *" running"* ]]
  kill -KILL "$pid"
  wait "$pid" || true
  # Written two minutes ago.
  python3 - logs/run-*.json << 'END'
import json, sys
run = json.load(open(sys.argv[1]))
assert run["exit_code"] is None
run.update(start=run["start"] - 300, wall_seconds=100, productive_seconds=100, unsaved_seconds=40, plan_seconds=0, launch_seconds=0)
json.dump(run, open(sys.argv[1], "w"))
END
  expect=0 costs logs
  [[ ${lines[1]} == *" 1 min 40 s "*" 1 min 0 s "*" 60.0 % "*" 40.0 s "*" killed "*"repeated 40.0 s" ]]
}

@test "launches of a job are added up, with the time in the queue" {
  mkdir logs
  python3 - << 'END'
import json
parts = ("plan", "launch", "unknown", "detection", "teardown", "restart", "repeated", "requeued", "end", "unsaved")
for number, (start, code) in enumerate(((1000, 75), (1160, 0))):
    run = {"ddlrun_run": 1, "job": "12", "cluster": "c", "host": "n1", "pid": 7, "requeues": number, "start": start,
           "exit_code": code, "progress": "checkpoints", "restarts": 0, "wall_seconds": 100, "productive_seconds": 100}
    json.dump(run | {part + "_seconds": 0 for part in parts}, open(f"logs/run-{number}.json", "w"))
END
  expect=0 costs logs
  [ "${#lines[@]}" -eq 4 ]
  [[ ${lines[1]} == 1970-01-01T00:16:40*" 12 "*" 1 min 40 s "*" 100.0 % "*" 0.0 s "*" 75" ]]
  [[ ${lines[2]} == *" 2 min 40 s "*" 62.5 % "*" 1 min 0 s "*" 0 "*"requeued 1 min 0 s" ]]
  [[ ${lines[3]} == "sum "*" 4 min 20 s "*" 3 min 20 s "*" 76.9 % "*"requeued 1 min 0 s" ]]
  expect=0 costs logs --json
  [ "$(python3 -c 'import json, sys; run = json.load(sys.stdin); print(len(run["launches"]), run["sum"]["requeued_seconds"])' <<< "$output")" = "2 60.0" ]
  echo '{"ddlrun_run": 1' > logs/run-2.json
  expect=65 costs logs
  [ "${#lines[@]}" -eq 4 ]
  [ "$messages" = "ddlctl: logs/run-2.json: it is not of ddlrun" ]
}

@test "directories that are none, or cannot be written to" {
  echo > file
  local directory
  for directory in file file/metrics /proc/self/x; do
    expect=71 run_ddlrun -n 1 --launcher=local --metrics-dir "$directory" sh -c 'echo > started'
    [[ $messages == *"cannot make the directory $directory: "*"; give another --metrics-dir" ]]
  done
  expect=71 run_ddlrun -n 1 --launcher=local --metrics-dir /proc/self sh -c 'echo > started'
  [[ $messages == *"/proc/self/ddlrun-"*".prom cannot be written: "*"; give another --metrics-dir" ]]
  [ ! -e started ]
  # One that goes away meanwhile ends nothing.
  expect=0 run_ddlrun -n 1 --launcher=local --metrics-dir metrics sh -c 'rm -r metrics'
  [[ $messages == *"ddlrun: $PWD/metrics/ddlrun-"*".prom cannot be written: No such file or directory" ]]
  expect=66 costs none
  [[ $messages == "ddlctl: none cannot be read: No such file or directory" ]]
  expect=66 costs tmp
  [[ $messages == "ddlctl: tmp has no run-*.json: give the directory of ddlrun --log-dir, "* ]]
}

# NVML as tests/launcher/health/fake_nvml.cc has it: from one reading of its two GPUs to the next they take 0.5 and 1 kWh.
fake_gpus() {
  mkdir -p lib
  ln -sf "$DDLRUN_BUILD/tests/libfake_nvml.so" lib/libnvidia-ml.so.1
  export LD_LIBRARY_PATH=$PWD/lib FAKE_NVML=$1
}

# Whether no process of this test reads them any more; other tests may have one.
# shellcheck disable=SC2046 # a word for each
no_meter() { ! grep -qs "LD_LIBRARY_PATH=$PWD/lib" /dev/null $(pgrep -x ddlrun-rank-ene | sed 's|.*|/proc/&/environ|'); }

# energy FILE: joules, those that were lost, and whether some are not in it.
energy() { echo "$(value "$1" gpu_energy_joules) $(value "$1" lost_gpu_energy_joules) $(value "$1" gpu_energy_is_partial)"; }

@test "the energy of the GPUs: over a restart, and how much of it was lost" {
  fake_gpus energy
  local launcher
  for launcher in $(launchers); do
    rm -rf checkpoint logs metrics
    # Of the first start, which has no checkpoint, all is lost.
    expect=0 run_ddlrun -n 2 --accelerators 2 -H localhost:2 --launcher="$launcher" --max-restarts 1 --progress-file checkpoint --log-dir logs \
      --metrics-dir metrics sh -c "sleep 1; [ \$DDLRUN_RESTART_COUNT = 1 ] || [ \$RANK = 0 ] || exit 3"
    [[ ${messages##*$'\n'} == *", end "*" s, energy 3.00 kWh, 1.50 of it lost" ]]
    [ "$(energy logs/run-*.json)" = "10800000.0 5400000.0 False" ]
    grep -q '^ddlrun_gpu_energy_joules{.*} 10800000.0$' metrics/*.prom
    grep -q '^ddlrun_lost_gpu_energy_joules{.*} 5400000.0$' metrics/*.prom
  done
  # One more launch, of one GPU.
  expect=0 run_ddlrun -n 1 -H localhost:1 --accelerators 1 -x CUDA_VISIBLE_DEVICES=GPU-b --launcher=local --progress-file checkpoint --log-dir logs -v sleep 1
  [[ $messages == *", energy 1.00 kWh"* && $messages != *"of it lost"* ]]
  expect=0 costs logs
  [[ ${lines[0]} == *" energy  "*" exit "* && ${lines[3]} == "sum "*" 4.00 kWh, 1.50 of it lost "* ]]
}

@test "the energy is that of the job's GPUs: the first ones, those that are visible, each once" {
  fake_gpus energy
  local row gpus visible energy
  for row in "2 1,0 1.50" "1 0 0.50" "1 1 1.00" "1 1,0 1.00" "2 1 1.00" "2 GPU-bbbb,GPU-aaaa 1.50" "1 GPU-a 0.50"; do
    read -r gpus visible energy <<< "$row"
    # Two ranks share them, and each sees its own alone.
    expect=0 run_ddlrun -n 2 --oversubscribe --accelerators "$gpus" -x "CUDA_VISIBLE_DEVICES=$visible" --gpu-visibility=rank --launcher=local -v sleep 1
    [[ $messages == *", energy $energy kWh; "* ]]
  done
  expect=0 run_ddlrun -n 1 -H localhost:1 --accelerators 1 --launcher=local -v sleep 1
  [[ $messages == *", energy 0.50 kWh; "* ]]
}

@test "energy that is not known is not printed" {
  local mode
  for mode in none broken old mig stuck; do
    fake_gpus "$mode"
    expect=0 run_ddlrun -n 2 --accelerators 2 -H localhost:2 --launcher=local -v --log-dir "$mode" sleep 1
    [[ $messages == *"ddlrun: wall time "* && $messages != *energy* ]]
    [ "$(energy "$mode"/run-*.json)" = "None None False" ]
  done
  wait_for 10 no_meter
  # Slices, which may be of a GPU that others use; no GPU; no library; a program that is over before NVML has started.
  fake_gpus energy
  expect=0 run_ddlrun -n 2 --accelerators 2 -H localhost:2 -x CUDA_VISIBLE_DEVICES=MIG-1,MIG-2 --launcher=local -v sleep 1
  [[ $messages != *energy* ]]
  expect=0 run_ddlrun -n 1 --accelerators 0 --launcher=local -v sh -c 'sleep 0.3; pgrep -x -P $PPID ddlrun-rank-ene; true'
  [[ -z $output && $messages != *energy* ]]
  rm lib/*
  expect=0 run_ddlrun -n 2 --accelerators 2 -H localhost:2 --launcher=local -v sleep 1
  [[ $messages != *energy* ]]
}

@test "a program that reads the counters and is killed, or is called by hand, disturbs nobody" {
  fake_gpus energy
  expect=0 run_ddlrun -n 2 --accelerators 2 -H localhost:2 --launcher=local -v sh -c 'sleep 1; [ "$RANK" = 1 ] || { pkill -KILL -x -P $PPID ddlrun-rank-ene && echo killed; }'
  [[ $output = killed && $messages != *energy* ]]
  # It ends with ddlrun.
  "$ddlrun" -n 2 --accelerators 2 -H localhost:2 --launcher=local sleep 60 2> /dev/null 3>&- &
  local pid=$!
  wait_for 10 pgrep -x -P "$pid" ddlrun-rank-ene
  kill -KILL "$pid"
  wait_for 10 no_meter
  local words
  for words in "" "0" "x" "1 0 2"; do
    # shellcheck disable=SC2086
    expect=64 run_separate "$DDLRUN_BUILD/libexec/ddlrun/ddlrun-rank-energy" $words
    [[ $messages == "usage: ddlrun-rank-energy GPUS [VISIBLE]; "* ]]
  done
  expect=0 run_separate "$DDLRUN_BUILD/libexec/ddlrun/ddlrun-rank-energy" 2 < /dev/null
  [ "$output" = r5400000000 ]
}
