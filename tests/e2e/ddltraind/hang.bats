#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A rank that is there but does nothing any more: the others find it, name it, and the run ends.

load common

# Half a minute is enough, but where a machine is busy: a bound is five times the longest beat.
limit=200

# stop_a_rank RANK OPTIONS...: a rank of a run of three is stopped in the middle of training; a step is far shorter than a second.
stop_a_rank() {
  local hung=$1
  shift
  start_training 3 --hang_floor_seconds=2 --results_dir=run --model_dir=run "$@"
  wait_for 60 grep -q "iteration: 20" out
  kill -STOP "$(ranks_here "$hung")"
  expect=70 end_of_training
}

@test "a rank that is stopped in training is named, the job ends with 70, nothing is left" {
  launcher=local stop_a_rank 1 --num_iter=100000
  [[ $(cat err) == *"ddltraind: rank 0 on "*": no progress for "[0-9]*" s in training, step "[0-9]*": rank 1 on "*" does not answer: "* ]]
  run ! compgen -G 'run/.hang*'
  # The stacks of those that live, with names; of the other what Linux says.
  [[ $(cat err) == *"; process "[0-9]*" of rank 1 is stopped; stacks of 2 ranks are in run/stacks"* ]]
  [ "$(ls run/stacks)" = "rank-0.txt
rank-2.txt" ]
  for rank in 0 2; do
    head -1 "run/stacks/rank-$rank.txt" | grep -q "^rank $rank on .*: no progress for [0-9]* s, waiting for other ranks$"
    grep -q "^  #[0-9]* trainer::.*Trainer::TrainSteps() in /.*ddltraind(+0x[0-9a-f]*)$" "run/stacks/rank-$rank.txt"
  done
}

@test "ddlctl stacks names a rank that is stopped and shows the others, whichever rank it is; then the run goes on" {
  launcher=local start_training 3 --results_dir=run --model_dir=model --num_iter=1000000
  wait_for 60 grep -q "iteration: 20" out
  # Who is asked at once may be at work of its own still.
  shows() { # RANK OTHERS
    run --separate-stderr timeout 60 "$DDLRUN_BUILD/bin/ddlctl" stacks run
    echo "$output"
    echo "$stderr"
    [ "$status" -eq 69 ] &&
      [[ ${lines[0]} == "rank $1 on "*" has not answered within 11 s: process $(ranks_here "$1") is stopped" ]] &&
      [[ $output == *"ranks $2 on "*" (2 of 3): in training, step "*", waiting for other ranks"* ]] &&
      [[ $output == *"  #"*" trainer::"*"Trainer::TrainSteps in ddltraind(+0x"* ]]
  }
  # Every thread: one that still runs may take the question of ddlctl.
  stop_rank() { # RANK
    pid=$(ranks_here "$1")
    kill -STOP "$pid"
    wait_for 10 eval "! cat /proc/$pid/task/*/status | grep '^State:' | grep -qv 'T (stopped)'"
  }
  stop_rank 1
  wait_for 60 shows 1 "0, 2"
  kill -CONT "$(ranks_here 1)"
  stop_rank 0
  wait_for 60 shows 0 "1-2"
  kill -CONT "$(ranks_here 0)"
  # Rank 0 did not answer at its socket.
  [[ $stderr == "ddlctl: "*".socket: ddltraind does not answer; is its process stopped? The others are asked without it."* ]]
  [ "$(ls model/stacks)" = "rank-0.txt
rank-1.txt
rank-2.txt" ]
  steps=$(grep -c "iteration: " out)
  wait_for 60 eval '[ "$(grep -c "iteration: " out)" -gt $((steps + 2)) ]'
  kill -USR1 "$job"
  expect=75 end_of_training
}

@test "ddlctl stacks says that a rank waits for its data, and in what, before it is taken for hung" {
  stall_input --hang_floor_seconds=100
  # It is the odd one, and so the first, once the others wait for it.
  shows() {
    timeout 60 "$DDLRUN_BUILD/bin/ddlctl" stacks run > stacks 2> /dev/null &&
      [[ $(head -1 stacks) =~ ^"rank 1 on ".*" (1 of 3): in training, step "[0-9]+", waiting for its data" ]]
  }
  wait_for 60 shows
  run ! grep -q "no progress\|has waited" err
  rm now
  yes | head -c 1000 > fifo
  kill -USR1 "$job"
  expect=75 end_of_training
}

@test "it may be rank 0" {
  launcher=local stop_a_rank 0 --num_iter=100000
  [[ $(cat err) == *"ddltraind: rank 1 on "*": no progress for "[0-9]*" s in training, step "[0-9]*": rank 0 on "*" does not answer: "* ]]
}

@test "the same with mpirun" {
  require_mpirun
  launcher=mpirun stop_a_rank 1 --num_iter=100000
  [[ $(cat err) == *"no progress for "[0-9]*" s in training, step "[0-9]*": rank 1 on "*" does not answer: "* ]]
}

@test "a whole run that is stopped and goes on is not taken for a hung one" {
  launcher=local start_training 2 --hang_floor_seconds=2 --results_dir=run --num_iter=100000
  wait_for 60 grep -q "iteration: 20" out
  ranks=$(ranks_here)
  kill -STOP $ranks
  sleep 4
  kill -CONT $ranks
  kill -USR1 "$job"
  expect=75 end_of_training
}

@test "a run of one rank that hangs in a kernel ends as well" {
  "$ddltraind" --version | grep -qw cpu || skip "this build has no oneDNN"
  cc -shared -fPIC -o fault.so "$BATS_TEST_DIRNAME/../../fault.c" -ldl
  export FAULT=hang FAULT_RANK=0 FAULT_IN=dnnl_primitive_execute FAULT_WHEN=$PWD/now LD_PRELOAD=$PWD/fault.so
  launcher=local start_training 1 --backend=cpu --hang_floor_seconds=2 --results_dir=run --num_iter=100000
  unset LD_PRELOAD
  wait_for 60 grep -q "iteration: 20" out
  : > now
  expect=70 end_of_training
  [[ $(cat err) == *"no progress for "[0-9]*" s in training, step "[0-9]*": rank 0 on "*" is still at work: "*"; rank 0 on "*" is in "*pause" < "*"; stacks of 1 rank are in run/stacks"* ]]
  run ! compgen -G 'run/.hang*'
}

# stall_input OPTIONS...: a run of three whose rank 1 reads no further after a while, until it gets letters from the
# file fifo.
stall_input() {
  cc -shared -fPIC -o fault.so "$BATS_TEST_DIRNAME/../../fault.c" -ldl
  mkfifo fifo
  export FAULT=wait FAULT_RANK=1 FAULT_IN=pread FAULT_WHEN=$PWD/now FAULT_FIFO=$PWD/fifo LD_PRELOAD=$PWD/fault.so
  launcher=local start_training 3 --hang_floor_seconds=2 --results_dir=run --num_iter=1000000 "$@"
  unset LD_PRELOAD
  wait_for 60 grep -q "iteration: 20" out
  : > now
}

@test "a rank that waits for its file system is told of, with the file, and goes on when that answers" {
  stall_input
  wait_for 60 grep -q "rank 1 on .* has waited [0-9]* s for its data (reading $PWD/fifo); the others wait for it" err
  wait_for 60 eval '[ "$(grep -c "has waited" err)" -ge 3 ]'
  rm now
  yes | head -c 1000 > fifo
  steps=$(grep -c "iteration: " out)
  wait_for 60 eval '[ "$(grep -c "iteration: " out)" -gt $((steps + 5)) ]'
  kill -USR1 "$job"
  expect=75 end_of_training
  run ! compgen -G 'run/.hang*'
  [ ! -e run/stacks ]
}

@test "after ten times the bound it ends the run" {
  stall_input
  expect=70 end_of_training
  [[ $(cat err) == *": no progress for "[0-9]*" s in training, step "[0-9]*": rank 1 on "*" has waited "[0-9]*" s for its data (reading $PWD/fifo): the file system hangs there; rank 1 on "*" is in "*"; stacks of 3 ranks are in run/stacks"* ]]
  grep -q "^  #[0-9]* .*read.* in /" run/stacks/rank-1.txt
}

@test "a rank that is stopped while it waits for its data is one that does not answer" {
  stall_input
  wait_for 60 grep -q "rank 1 on .* has waited [0-9]* s for its data" err
  kill -STOP "$(ranks_here 1)"
  expect=70 end_of_training
  [[ $(cat err) == *": rank 1 on "*" does not answer: "*" of rank 1 is stopped"* ]]
}
