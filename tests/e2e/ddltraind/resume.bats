#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# However a run is interrupted, the same command again ends with the same weights, bit for bit.

load common

# Half a second even where a step takes half a millisecond.
steps=800
last=checkpoints/step-0000000800

whole_run() {
  expect=0 train "$1" --num_iter=$steps --results_dir=whole --mode=train
}

# interrupted RANKS ACTION: a run with checkpoints, and the action in its midst.
interrupted() {
  start_training "$1" --num_iter=$steps --results_dir=run --mode=train --checkpoint_every=10
  wait_for 20 compgen -G 'run/checkpoints/step-*0' > /dev/null # the first ones are soon pruned
  eval "$2"
  end_of_training
}

goes_on_to_the_same_end() {
  expect=0 train "$1" --num_iter=$steps --results_dir=run --mode=train
  [[ $messages == *"resumed from step "* ]]
  local file
  for file in whole/$last/*.safetensors; do
    cmp "$file" "run/$last/${file##*/}"
  done
  [ "$(find run/checkpoints -name '.*')" = "" ]
}

stopped_in_its_midst() {
  cat err
  [ "$status" -eq 75 ]
  local newest
  newest=$(find run/checkpoints -name "step-*" -printf "%f\n" | sort | tail -n 1)
  [ "$newest" != "$(basename $last)" ]
  grep -q "stopped by signal $1 after step $((10#${newest#step-})): give the same command again" err
}

every_way() {
  whole_run "$1"

  expect=0 train "$1" --num_iter=$steps --run_iter=17 --results_dir=run --mode=train
  [ "$(ls run/checkpoints)" = step-0000000017 ]
  goes_on_to_the_same_end "$1"

  rm -r run
  interrupted "$1" 'kill -TERM $job'
  stopped_in_its_midst 15
  goes_on_to_the_same_end "$1"

  rm -r run
  interrupted "$1" 'kill -USR1 $job'
  stopped_in_its_midst 10
  goes_on_to_the_same_end "$1"

  rm -r run
  interrupted "$1" 'kill -KILL $(ranks_here $(('"$1"' - 1)))'
  [ "$status" -eq 137 ]
  [ ! -e run/$last ]
  goes_on_to_the_same_end "$1"
}

# Written nearly all the time: ten steps are over sooner than a file is on the disk.
@test "two ranks, killed while rank 0 writes a checkpoint beside them" {
  launcher=local whole_run 2
  launcher=local start_training 2 --num_iter=$steps --results_dir=run --mode=train --checkpoint_every=10
  wait_for 20 compgen -G 'run/checkpoints/step-*0' > /dev/null
  wait_for 20 compgen -G 'run/checkpoints/.tmp-step-*' > /dev/null
  kill -KILL "$(ranks_here 0)"
  expect=137 end_of_training
  [ ! -e run/$last ]
  launcher=local goes_on_to_the_same_end 2
}

@test "two ranks that lose their terminal, or get the SIGUSR2 of a batch system, write a checkpoint" {
  for signal in HUP USR2; do
    rm -rf run
    launcher=local interrupted 2 "kill -$signal \$job"
    stopped_in_its_midst "$(kill -l "$signal")"
  done
}

@test "with and without --checkpoint_in_background: the same bytes" {
  for way in on off; do
    launcher=local expect=0 train 2 --num_iter=60 --results_dir=$way --mode=train --checkpoint_every=10 --keep_checkpoints=2 \
      --keep_every=2 --checkpoint_in_background=$way
    [ "$(grep -c "info: checkpoint of step .* written: $way/checkpoints/step-" <<< "$messages")" -eq 6 ]
  done
  [ "$(ls -A on/checkpoints)" = $'step-0000000020\nstep-0000000040\nstep-0000000050\nstep-0000000060' ]
  diff -r on/checkpoints off/checkpoints
}

@test "two ranks that keep averages, killed" {
  small+=(--ema=0.99)
  export launcher=local
  whole_run 2
  [ -s whole/$last/average.safetensors ]
  interrupted 2 'kill -KILL $(ranks_here 1)'
  [ "$status" -eq 137 ]
  [ ! -e run/$last ]
  goes_on_to_the_same_end 2
}

@test "one rank, stopped by --run_iter, SIGTERM, SIGUSR1 and SIGKILL" {
  every_way 1
}

@test "two ranks without MPI, stopped by --run_iter, SIGTERM, SIGUSR1 and SIGKILL" {
  launcher=local every_way 2
}

@test "two ranks of mpirun, stopped by --run_iter, SIGTERM, SIGUSR1 and SIGKILL" {
  require_mpirun
  launcher=mpirun every_way 2
}
