#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A rank that is there but does nothing any more: the others find it, name it, and the run ends.

# shellcheck disable=SC2154 # common.bash sets them

load common

# stop_a_rank RANK OPTIONS...: a rank of a run of three is stopped in the middle of training; a step is far shorter than a second.
stop_a_rank() {
  local hung=$1
  shift
  start_training 3 --hang_floor_seconds=2 --results_dir=run --model_dir=run "$@"
  wait_for 30 grep -q "iteration: 20" out
  kill -STOP "$(ranks_here "$hung")"
  local began=$SECONDS
  end_of_training
  cat err
  [ $((SECONDS - began)) -le 10 ]
  [ "$status" -eq 70 ]
}

@test "a rank that is stopped in training is named, the job ends with 70, nothing is left" {
  launcher=local stop_a_rank 1 --num_iter=100000
  [[ $(cat err) == *"ddltraind: rank 0 on "*": no progress for 2 s in training, step "[0-9]*": rank 1 on "*" does not answer: "* ]]
  run ! compgen -G 'run/.hang*'
}

@test "it may be rank 0" {
  launcher=local stop_a_rank 0 --num_iter=100000
  [[ $(cat err) == *"ddltraind: rank 1 on "*": no progress for 2 s in training, step "[0-9]*": rank 0 on "*" does not answer: "* ]]
}

@test "the same with mpirun" {
  require_mpirun
  launcher=mpirun stop_a_rank 1 --num_iter=100000
  [[ $(cat err) == *"no progress for 2 s in training, step "[0-9]*": rank 1 on "*" does not answer: "* ]]
}

@test "a whole run that is stopped and goes on is not taken for a hung one" {
  launcher=local start_training 2 --hang_floor_seconds=1 --results_dir=run --num_iter=1000
  wait_for 30 grep -q "iteration: 20" out
  local ranks
  ranks=$(ranks_here)
  # shellcheck disable=SC2086 # words
  kill -STOP $ranks
  sleep 2
  # shellcheck disable=SC2086 # words
  kill -CONT $ranks
  kill -USR1 "$job"
  end_of_training
  cat err
  [ "$status" -eq 75 ]
}

@test "a run of one rank that hangs in a kernel ends as well" {
  "$ddltraind" --version | grep -qw cpu || skip "this build has no oneDNN"
  cc -shared -fPIC -o fault.so "$BATS_TEST_DIRNAME/../../fault.c" -ldl
  export FAULT=hang FAULT_RANK=0 FAULT_IN=dnnl_primitive_execute FAULT_WHEN=$PWD/now LD_PRELOAD=$PWD/fault.so
  launcher=local start_training 1 --backend=cpu --hang_floor_seconds=2 --results_dir=run --num_iter=100000
  unset LD_PRELOAD
  wait_for 30 grep -q "iteration: 20" out
  : > now
  end_of_training
  cat err
  [ "$status" -eq 70 ]
  [[ $(cat err) == *"no progress for 2 s in training, step "[0-9]*": rank 0 on "*" is still at work: "* ]]
  run ! compgen -G 'run/.hang*'
}
