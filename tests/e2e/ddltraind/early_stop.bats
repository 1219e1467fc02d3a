#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A training that stops, or takes a checkpoint, without a signal: before the end of its job's time, and by files in its directory.

load common

# Like interrupted runs of any kind: a checkpoint of the step that the last line names, and the same command resumes from there.
goes_on() {
  local step
  step=$(sed -n "s/.*stopped $1 after step \([0-9]*\): give the same command again to resume/\1/p" err)
  [ -n "$step" ]
  [ "$(find run/checkpoints -name 'step-*' | sort | tail -n 1)" = "run/checkpoints/step-$(printf %010d "$step")" ]
  unset SLURM_JOB_END_TIME
  expect=0 train 2 --mode=train --results_dir=run --num_iter="$((step + 5))"
  [[ $messages == *"resumed from step $step,"* ]]
}

@test "the end of the job's time: a checkpoint before it, 75, and the same command goes on" {
  began=$(date +%s)
  end=$((began + 12))
  export SLURM_JOB_END_TIME=$end
  launcher=local start_training 2 --num_iter=1000000 --mode=train --results_dir=run
  end_of_training
  ended=$(date +%s)
  cat err
  [ "$status" -eq 75 ]
  [ "$ended" -lt "$end" ]
  # A quarter of so short a time is kept for the checkpoint.
  [ "$ended" -ge $((began + 6)) ]
  grep -q "info: the job's time ends at .* (SLURM_JOB_END_TIME): training stops with a checkpoint at .* s before" err
  grep -q "warning: the job's time ends in .* s (SLURM_JOB_END_TIME): stopping" err
  goes_on "for the end of the job's time"
}

@test "--stop_margin says how long before, or that the time is of no concern" {
  export SLURM_JOB_END_TIME
  SLURM_JOB_END_TIME=$(($(date +%s) + 1000))
  launcher=local expect=75 train 2 --num_iter=1000000 --mode=train --results_dir=run --stop_margin=1000
  rm -r run
  launcher=local expect=0 train 2 --num_iter=20 --mode=train --results_dir=run --stop_margin=off
  [[ $messages != *SLURM_JOB_END_TIME* ]]
}

@test "the files checkpoint and stop: what they ask for is done, and they are gone" {
  launcher=local start_training 2 --num_iter=1000000 --mode=train --results_dir=run --checkpoint_every=0
  wait_for 20 grep -q "iteration: 20" out
  [ ! -e run/checkpoints ]
  touch run/checkpoint
  wait_for 10 test ! -e run/checkpoint
  compgen -G 'run/checkpoints/step-*/manifest.json'
  touch run/stop
  expect=75 end_of_training
  [ ! -e run/stop ]
  [ "$(find run/checkpoints -name 'step-*' | wc -l)" -eq 2 ]
  goes_on "by the file run\/stop"
}

@test "a file stop from before the start is removed, and one with text is left alone" {
  mkdir run
  touch run/stop
  echo 'model_checkpoint_path: "model.ckpt-7"' > run/checkpoint
  expect=0 train 1 --num_iter=10 --mode=train --results_dir=run
  [ ! -e run/stop ]
  [ -s run/checkpoint ]
  [[ $messages == *"warning: run/stop is from before the start: it is removed and not obeyed"* ]]
  [[ $messages == *"warning: run/checkpoint is not an empty file, so it is left as it is and taken for no order"* ]]
}

@test "a limit of CPU time: a checkpoint, 75, and the same command goes on" {
  for seconds in 2 3; do
    limited=(bash -c 'ulimit -S -t "$0"; exec "$@"' "$seconds" "$ddltraind")
    expect=75 run_separate timeout 60 "${limited[@]}" "${small[@]}" --mode=train --results_dir=run \
      --num_iter=100000000 --checkpoint_every=0
    [[ $stderr == *"stopped by signal 24 after step "*": give the same command again to resume"* ]]
    [ -n "$(find run/checkpoints -name 'step-*')" ]
  done
  [[ $stderr == *"resumed from step "* ]]
  expect=75 run_separate timeout 60 "$ddlrun" -n 2 --oversubscribe --launcher=local "${limited[@]}" "${small[@]}" \
    --mode=train --results_dir=both --num_iter=100000000 --checkpoint_every=0
}
