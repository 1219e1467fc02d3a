#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A rank that is slower than the others for long is named in the log.

load common

limit=300 # all steps are as slow as the slowest rank's

# slow_down PID: lets it run for a sixth of the time, from now on; to be ended by its own process id, $brake.
slow_down() {
  (
    while kill -STOP "$1" 2> /dev/null; do
      sleep 0.1
      kill -CONT "$1" || break
      sleep 0.02
    done
  ) 3>&- &
  brake=$!
}

@test "a rank that gets a sixth of the time is named with its host, and the end of it is told" {
  # Ten steps are longer than it runs at a time, so that it is stopped in each ten of them.
  small+=(--image_size=192)
  launcher=local start_training 2 --results_dir=run --num_iter=1000000
  wait_for 60 grep -q "iteration: 20" out
  slow=$(ranks_here 1)
  slow_down "$slow"
  wait_for 100 grep -q "rank 1 on .* slower than the median of the ranks for 100 steps: " err
  kill "$brake"
  kill -CONT "$slow"
  wait_for 120 grep -q "rank 1 on .* is no longer slower" err
  kill -USR1 "$job"
  expect=75 end_of_training
  grep -q "rank 1 on .*: in each it is busy for [0-9.]* ms, they for [0-9.]* (ms: input wait .*; CPU" err
}
