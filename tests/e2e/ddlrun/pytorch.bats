#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The PyTorch program of the user guide, as it stands there: it hangs, is killed, runs out of time, and goes on each time.

load common

setup() {
  ddlrun="$DDLRUN_BUILD/bin/ddlrun"
  enter_test_directory
  # shellcheck source=tests/pytorch.bash disable=SC1091
  . "$BATS_TEST_DIRNAME/../../pytorch.bash"
  mkdir bin
  use_pytorch "$PWD/bin" || skip "PyTorch is not installed (tools/bootstrap check)"
  sed -n '/^```python file=loop.py$/,/^```$/p' "$BATS_TEST_DIRNAME/../../../doc/user-guide/your-program.md" | sed '1d;$d' > loop.py
  [ "$(wc -l < loop.py)" -gt 20 ]
  export OMP_NUM_THREADS=1 USE_LIBUV=0 # Debian 13's PyTorch has no libuv
}

# Nothing goes on behind a test that has failed.
teardown() {
  if [ -n "${watch:-}" ]; then
    kill "$watch" 2> /dev/null || true
    wait "$watch" || true
  fi
  require_no_run_directory
}

# The process of a rank that runs in this directory.
pid_of_rank() {
  local pid
  for pid in $(pgrep -f 'loop\.py'); do
    [ "$(readlink "/proc/$pid/cwd")" = "$BATS_TEST_TMPDIR" ] || continue
    [[ $(readlink "/proc/$pid/exe") == *python* ]] || continue
    tr '\0' '\n' < "/proc/$pid/environ" | grep -qx "RANK=$1" || continue
    echo "$pid"
    return 0
  done
  return 1
}

# start_loop OPTIONS...: its output in out and err.
start_loop() {
  timeout --foreground 450 "$ddlrun" --launcher=local --oversubscribe -n 2 --heartbeat 'beats/%r' --progress-file checkpoint.pt \
    "$@" python3 loop.py 100000000 > out 2> err 3>&- &
  watch=$!
}

end_of_loop() {
  status=0
  wait "$watch" || status=$?
  watch=
  cat out err
}

# A checkpoint that is newer than the file `before`.
has_saved() { [ checkpoint.pt -nt before ]; }

@test "a rank that hangs and one that is killed: all start again from the checkpoint" {
  touch before
  start_loop --hang-after 15 --max-restarts 2
  wait_for 60 has_saved
  kill -STOP "$(pid_of_rank 1)"
  wait_for 60 grep -q 'started again 1 times' out
  touch before
  wait_for 60 has_saved
  kill -KILL "$(pid_of_rank 0)"
  wait_for 60 grep -q 'started again 2 times' out
  touch before
  wait_for 60 has_saved
  # As Slurm's own signal does.
  kill -USR1 "$(pgrep -P "$watch" -x ddlrun)"
  end_of_loop
  [ "$status" -eq 75 ]
  grep -q "it hangs: rank [01] on .* has not touched $PWD/beats/[01] for " err
  grep -q "^from step [1-9][0-9]* on, started again 2 times" out
}

@test "before the end of the job's time it saves and ends with 75, and goes on from there" {
  touch before
  export SLURM_JOB_END_TIME=$(($(date +%s) + 60))
  start_loop --stop-before 30
  wait_for 60 has_saved
  end_of_loop
  [ "$status" -eq 75 ]
  grep -q "ranks got SIGUSR1 30 s before the end of the job's time" err
  step=$(python3 -c 'import torch; print(torch.load("checkpoint.pt")["step"])')
  unset SLURM_JOB_END_TIME
  run -0 "$ddlrun" --launcher=local --oversubscribe -n 2 --heartbeat 'beats/%r' python3 loop.py $((step + 5))
  [[ $output == *"from step $step on, "* && $output == *"rank 1 is through"* ]]
}

@test "torchrun as one rank on each of two nodes is one world" {
  command -v mpirun > /dev/null || skip "mpirun is not installed"
  unset USE_LIBUV
  python3 -m torch.distributed.run --no_python --nproc_per_node=1 true 2> /dev/null ||
    skip "torchrun of this PyTorch does not run: Debian's (1.13 with Python 3.11, 2.6 without libuv)"
  printf '%s\n' '#!/bin/sh' 'mkdir -p "$TMPDIR/$1"; directory=$TMPDIR/$1; shift' \
    'exec env -i PATH="$PATH" HOME=/ TMPDIR="$directory" sh -c "$*"' > agent
  chmod +x agent
  printf '%s\n' 'import os, torch, torch.distributed as dist' 'dist.init_process_group("gloo")' 'ones = torch.ones(1)' \
    'dist.all_reduce(ones)' 'os.write(1, f"rank {dist.get_rank()} sum {int(ones)}\n".encode())' > sum.py
  expect=0 run_ddlrun -H 127.0.0.1:1,n2:1 --launcher=mpirun --mpiarg "--mca plm_rsh_agent $PWD/agent" python3 -m torch.distributed.run --nproc_per_node=2 sum.py
  [ "$(grep '^rank' <<< "$output" | sort)" = $'rank 0 sum 4\nrank 1 sum 4\nrank 2 sum 4\nrank 3 sum 4' ]
}
