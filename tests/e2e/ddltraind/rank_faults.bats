#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What goes wrong on one rank while the weights are sound: they are saved before the run ends.

load common

@test "a bad record on one rank ends the run with a checkpoint of the last whole step, and a later run goes on" {
  cp -r "$data" damaged
  rm damaged/ddldata.manifest
  python3 "$damage" text damaged/train-00005-of-00008
  for ranks in 1 2; do
    expect=65 train $ranks --num_iter=40 --mode=train --shuffle=none --data_dir=damaged --results_dir=run$ranks
    [[ $messages == *"damaged/train-00005-of-00008, record at offset 0: "*"; --bad_records=skip leaves such records out; the weights of step "*" were saved"* ]]
    step=$(ls run$ranks/checkpoints)
    [ "$(grep -c . <<< "$step")" -eq 1 ]
    [[ $messages == *"the weights of step $((10#${step#step-})) were saved"* ]]
    expect=0 train $ranks --num_iter=40 --mode=train --shuffle=none --data_dir=damaged --results_dir=run$ranks --bad_records=skip
    [[ $messages == *"resumed from step $((10#${step#step-})),"* ]]
  done
}

# with_fault KIND STEPS OPTIONS...: a run of two, of which rank 1 cannot read once there is a file `now`.
with_fault() {
  export FAULT=$1 FAULT_RANK=1 FAULT_IN=pread FAULT_WHEN=$PWD/now LD_PRELOAD=$PWD/fault.so
  launcher=local start_training 2 --hang_floor_seconds=20 --results_dir="$1" --num_iter="$2" --mode=train "${@:3}"
  unset LD_PRELOAD
  wait_for 60 grep -q "iteration: 20" out
}

@test "a file that cannot be read is opened again; where that is no help the weights are saved" {
  cc -shared -fPIC -o fault.so "$BATS_TEST_DIRNAME/../../fault.c" -ldl
  with_fault stale 3000
  : > now
  expect=0 end_of_training
  rm now
  with_fault eio 1000000
  : > now
  expect=71 end_of_training
  grep -q "ddltraind: rank 1 on .*: cannot read .*train-.*, not even after it was opened again: Input/output error; the weights of step [0-9]* were saved" err
  [ "$(ls eio/checkpoints | tail -n 1)" = "step-$(printf %010d "$(sed -n 's/.*rank 1 on .*the weights of step \([0-9]*\) were saved.*/\1/p' err)")" ]
}

@test "a file that has become another one is not read in the place of one that is stale" {
  cc -shared -fPIC -o fault.so "$BATS_TEST_DIRNAME/../../fault.c" -ldl
  cp -r "$data" replaced
  with_fault stale 1000000 --data_dir=replaced
  for file in replaced/train-*; do
    cp "$file" new
    mv new "$file"
  done
  : > now
  expect=65 end_of_training
  grep -q "rank 1 on .*: replaced/train-.* was replaced by another file since the start.*; the weights of step [0-9]* were saved" err
}

@test "--resume_from takes an older checkpoint, and a complete training says that it is" {
  expect=0 train 2 --num_iter=6 --checkpoint_every=2 --mode=train --results_dir=run
  expect=0 train 2 --num_iter=6 --checkpoint_every=2 --mode=train --results_dir=run
  [[ $messages == *"training is complete: step 6 of 6; a larger --num_iter trains on"* ]]
  expect=64 train 2 --num_iter=6 --mode=train --results_dir=run --resume_from=3
  [[ $messages == *"run/checkpoints has no checkpoint of step 3; it has those of step 2, 4 and 6"* ]]
  expect=0 train 2 --num_iter=6 --mode=train --results_dir=run --resume_from=2
  [[ $messages == *"resumed from step 2,"*"step-0000000006 is set aside: it is now run/checkpoints/step-0000000006.unusable"* ]]
  [ -d run/checkpoints/step-0000000006 ]
}
