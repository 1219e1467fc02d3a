#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Numbers that are none, and memory that has another bit on one rank: the run goes on as it was told to, or ends and says where.

load common

# Weights with which every loss is NaN, though they are all numbers: what leaves the last batch norm is infinite.
infinite_activations() {
  expect=0 train 1 --num_iter=1 --mode=train --results_dir=first
  local from=first/checkpoints/step-0000000001/model.safetensors
  local last
  last=$(python3 "$safetensors" names "$from" | grep 'bn3.weight$' | sort | tail -n 1)
  python3 "$safetensors" filled "$from" infinite.safetensors "$last" 3e38
}

@test "a NaN loss ends all ranks at its step with 70, and no checkpoint is written" {
  infinite_activations
  launcher=local expect=70 train 2 --num_iter=50 --mode=train --results_dir=run --init_from=infinite.safetensors
  [[ $messages == *"step 0: the loss is "*"training has diverged; start again from the last checkpoint with a smaller --lr_init"* ]]
  [[ $messages == *"or with --on_nan=skip"* ]]
  [ ! -e run/checkpoints ]
}

@test "--on_nan=skip leaves out ten such steps in a row, and then ends the run" {
  infinite_activations
  launcher=local expect=70 train 2 --num_iter=50 --mode=train --results_dir=run --init_from=infinite.safetensors --on_nan=skip
  [[ $messages == *"[rank 0] warning: step 0: the loss is NaN or infinite: update skipped (--on_nan=skip)"* ]]
  [ "$(grep -v '^ddlrun: ' <<< "$messages" | grep -c 'update skipped')" -eq 1 ]
  [[ $messages == *"step 10: the loss is "*", after 10 steps in a row whose updates were left out: "* ]]
  [ ! -e run/checkpoints ]
}

@test "NaN weights end the run with --on_nan=skip too" {
  expect=70 train 1 --num_iter=50 --mode=train --results_dir=run --lr_init=1e30 --on_nan=skip
  [[ $messages == *"step "*": the weights are too large or NaN (learning rate "* ]]
  [ ! -e run/checkpoints ]
}

# With a learning rate of 0 the weights stay what they were, so that a file tells which bytes to look for.
@test "--paranoid names the rank in whose memory a bit of the weights has changed, 71" {
  expect=0 train 1 --num_iter=1 --mode=train --results_dir=first --lr_init=0
  launcher=local start_training 3 --num_iter=100000 --mode=train --results_dir=run --lr_init=0 --paranoid=10 --checkpoint_every=0
  wait_for 30 grep -q "iteration: 20" out
  local flipped=0
  python3 "$BATS_TEST_DIRNAME/flip_weight.py" "$(ranks_here 1)" first/checkpoints/step-0000000001/model.safetensors fc.weight || flipped=$?
  [ "$flipped" -eq 0 ] || kill "$job" || :
  end_of_training
  [ "$flipped" -ne 77 ] || skip "the memory of another process cannot be written here"
  [ "$flipped" -eq 0 ]
  [ "$status" -eq 71 ]
  [[ $(cat err) =~ "ddltraind: rank 1 on "[^:]*": after step "[0-9]*"0 rank 1 on "[^\ ]*" has other weights or momentum than the 2 ranks that are alike: " ]]
  [[ $(tail -n 1 err) == "ddlrun: [ERROR DDL-20-1] the job failed: rank 1 on "*"exit code 71"* ]]
  [ ! -e run/checkpoints ]
}

@test "--paranoid finds nothing in a sound run" {
  launcher=local expect=0 train 2 --num_iter=30 --mode=train --results_dir=run --paranoid=1
}

@test "--replay_check names the rank that computes a wrong gradient, and saves the weights of the step before, 71" {
  cc -shared -fPIC -o fault.so "$BATS_TEST_DIRNAME/../../fault.c" -ldl
  export FAULT=flip FAULT_RANK=1 FAULT_IN=dnnl_primitive_execute FAULT_WHEN=$PWD/now LD_PRELOAD=$PWD/fault.so
  launcher=local start_training 2 --num_iter=1000000 --mode=train --results_dir=run --backend=cpu --replay_check=1 --checkpoint_every=0
  unset LD_PRELOAD
  wait_for 30 grep -q "iteration: 20" out
  : > now
  expect=71 end_of_training
  local message
  message=$(grep "^ddltraind: rank 1 on .*: step [0-9]*: rank 1 on [^ ]* (CPU.*) has computed two results from the same weights and images: " err)
  [[ $message == *"the gradient of "*" differs in "*"; the step was not applied: "*" (sbatch --exclude="*"dcgmi diag"* ]]
  local step
  step=$(sed 's/.*: step \([0-9]*\): rank 1 .*/\1/' <<< "$message")
  [[ $message == *"; the weights of step $step were saved" ]]
  [ "$(ls run/checkpoints)" = "step-$(printf %010d "$step")" ]
  [[ $(tail -n 1 err) == "ddlrun: [ERROR DDL-20-1] the job failed: rank 1 on "*"exit code 71"* ]]
  rm now
  launcher=local expect=0 train 2 --num_iter=$((step + 20)) --mode=train --results_dir=run --backend=cpu --replay_check=1
  [[ $messages == *"resumed from step $step,"* ]]
}

@test "--replay_check finds nothing in a sound run, whose weights are those of one without it" {
  for check in 0 1 4; do
    launcher=local expect=0 train 2 --num_iter=10 --mode=train --results_dir=run$check --accumulate=2 --ema=0.9 --replay_check=$check
  done
  for check in 1 4; do
    for file in model average optimizer; do
      cmp run0/checkpoints/step-0000000010/$file.safetensors run$check/checkpoints/step-0000000010/$file.safetensors
    done
  done
}
