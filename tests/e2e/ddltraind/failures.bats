#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A disk that is full, and ranks that die.

load common

# check_death RANK: what ddlrun says and leaves when this rank has been killed.
check_death() {
  local began=$SECONDS
  end_of_training
  [ $((SECONDS - began)) -le 5 ]
  [ "$status" -eq 137 ]
  [[ $(tail -n 1 err) == "ddlrun: [ERROR DDL-20-1] the job failed: rank $1 on "*"signal 9 (Killed)"* ]]
  [ -z "$(ranks_here)" ]
  ! compgen -G "tmp/ddlrun.*"
}

kill_a_rank() {
  start_training 2 --num_iter=100000 --results_dir=run
  wait_for 20 grep -q "iteration: 20" out
  kill -KILL "$(ranks_here 1)"
  check_death 1
}

@test "a killed rank ends the job within 5 seconds and is named last, with the local launcher" {
  launcher=local kill_a_rank
}

@test "a killed rank ends the job within 5 seconds and is named last, with mpirun" {
  require_mpirun
  launcher=mpirun kill_a_rank
}

# A limit on the size of files stands for a full disk: writes fail in the same place, and no mount is needed.
# One rank, since the limit would also refuse the memory that ranks share.
@test "a disk that is full when a checkpoint is written: the older ones stay, and a later run goes on" {
  expect=0 train 1 --num_iter=20 --run_iter=10 --results_dir=run
  find run/checkpoints -type f -exec md5sum {} + > before

  ulimit -Sf 16
  train 1 --num_iter=20 --results_dir=run
  ulimit -Sf unlimited
  expect_status 71 "$messages"
  [[ $messages == *"ddltraind: cannot write run/checkpoints/"*": File too large; make room there"* ]]
  md5sum -c before
  [ "$(ls -A run/checkpoints)" = step-0000000010 ]

  expect=0 train 1 --num_iter=20 --results_dir=run
  [[ $messages == *"resumed from step 10"* ]]
  [ -e run/checkpoints/step-0000000020/manifest.json ]
}

# The first checkpoint has no room: the loop hears of it after a later step, and ends as if it had waited.
@test "a disk that is full when a checkpoint is written beside training" {
  for way in on off; do
    ulimit -Sf 16
    train 1 --num_iter=100000 --checkpoint_every=10 --mode=train --results_dir=$way --checkpoint_in_background=$way
    ulimit -Sf unlimited
    expect_status 71 "$messages"
    [[ $messages == *"ddltraind: cannot write $way/checkpoints/"*"/model.safetensors: File too large; make room there"* ]]
    [ -z "$(ls -A $way/checkpoints)" ]
  done
}

@test "a disk that is really full" {
  mkdir disk
  mount -t tmpfs -o size=80k tmpfs disk 2> mount.err || skip "cannot mount: $(cat mount.err)"
  # The first checkpoint, of 58 kB with the manifest, has room; the second has not.
  train 2 --num_iter=20 --checkpoint_every=10 --model_dir=disk --results_dir=run
  held=$(ls -A disk/checkpoints)
  find disk -type f -exec md5sum {} + > after
  umount disk
  expect_status 71 "$messages"
  [[ $messages == *"cannot write disk/checkpoints/"*"No space left on device; make room there"* ]]
  [ "$held" = step-0000000010 ]
  [ "$(wc -l < after)" -eq 3 ]
}

@test "what all ranks find is said once, by rank 0" {
  for launcher in local mpirun; do
    [ "$launcher" = local ] || require_mpirun
    for arguments in --nope=1 --data_dir=nowhere; do
      train 4 --num_iter=10 --results_dir=run "$arguments"
      echo "$messages"
      [ "$(grep -c '^ddltraind: ' <<< "$messages")" -eq 1 ]
      [[ $messages == *"ddltraind: rank 0 on "* ]]
    done
  done
}
