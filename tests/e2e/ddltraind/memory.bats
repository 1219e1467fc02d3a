#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A batch for which there is no memory is refused before the first step, with the largest that fits.

load common

setup() {
  enter_test_directory
  ddlrun="$DDLRUN_BUILD/bin/ddlrun"
  ddltraind="$DDLRUN_BUILD/bin/ddltraind"
  group=
  # With a batch of 8 the run needs some 0.6 GB.
  small=(--arch=resnet50 --classes=10 --image_size=96 --backend=cpu --threads=1 --data_threads=1 --mode=train
    --iter_unit=batch --num_iter=1 --lr_warmup_epochs=0 --results_dir=run)
}

teardown() {
  [ -z "$group" ] || rmdir "$group"
  [ -z "$(ranks_here)" ]
}

# refused_for BATCH: the batch that is recommended is in $fits, the sentence in $refusal.
refused_for() {
  expect_status 78 "$status: $messages"
  refusal=$(sed -n "s/^ddltraind: \(rank [0-9]* on [^ ]*: \)\?\(--batch_size=$1 .*\)/\2/p" <<< "$messages")
  [ "$(wc -l <<< "$refusal")" -eq 1 ]
  fits=${refusal##*the largest that fits is --batch_size=}
  [[ $fits =~ ^[1-9][0-9]*$ ]]
  [ ! -e run ]
}

@test "more images than this machine has memory for: 78, what is needed, what there is, what fits" {
  train 1 --batch_size=200000
  refused_for 200000
  [[ $refusal =~ ^"--batch_size=200000 needs "(about )?[0-9]+.[0-9]{2}" GB of host memory for each rank, but only "[0-9]+.[0-9]{2}" GB are " ]]
  train 1 --batch_size=1000000000000000
  refused_for 1000000000000000
  [[ $refusal == "--batch_size=1000000000000000 needs about "* ]]
}

@test "ranks of one machine share its memory, and one of them says so" {
  train 1 --batch_size=200000
  refused_for 200000
  local alone=$fits
  launcher=local train 2 --batch_size=200000
  refused_for 200000
  [[ $refusal == *" GB are its share of what is left "* ]]
  # Half, but for what does not grow with the batch; what else runs here comes and goes.
  ((fits > alone / 3 && fits < alone * 2 / 3))
}

@test "a dry run shows a short table, all pieces if asked, and the largest batch, also of one that does not fit" {
  expect=0 train 1 --batch_size=8 --dry_run
  for row in weights gradients momentum activations workspace "input batches" checkpoint total available; do
    grep -Eq "^  $row +[0-9]+\.[0-9]{2}$" <<< "$output" || {
      echo "no $row in $output"
      return 1
    }
  done
  grep -Eq "^largest batch +[0-9]+ images in a rank$" <<< "$output"
  [ "$(wc -l <<< "$output")" -lt 20 ]
  expect=0 train 1 --batch_size=8 --dry_run=full
  [ "$(grep -c " bytes  at " <<< "$output")" -gt 100 ]
  train 1 --batch_size=200000 --dry_run
  refused_for 200000
  grep -q "^largest batch  *$fits images in a rank$" <<< "$output"
}

# A sanitizer's own memory is in no plan.
require_plain_memory() {
  ! ldd "$ddltraind" | grep -q "lib[at]san" || skip "the program is built with a sanitizer"
}

@test "under ulimit -v: a batch beyond it is refused, one within runs" {
  require_plain_memory
  ulimit -v 6000000
  train 1 --batch_size=2000
  refused_for 2000
  [[ $refusal == *" GB are left of its address space (ulimit -v): "* ]]
  expect=0 train 1 --batch_size=4
}

# What is recommended is trained: the kernel would kill the program for a page more than the limit.
@test "in a control group: the batch that is refused, and the one that is named and runs" {
  require_plain_memory
  local place limit=memory.max
  place=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)
  if grep -q ":memory:" /proc/self/cgroup; then
    place=/sys/fs/cgroup/memory$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)
    limit=memory.limit_in_bytes
  fi
  mkdir "$place/ddltraind-memory-$$" 2> /dev/null || skip "no control group can be made in $place"
  group=$place/ddltraind-memory-$$
  [ -e "$group/$limit" ] || skip "$group does not account memory"
  echo 1000000000 > "$group/$limit"
  in_group() {
    run_separate timeout 60 bash -c 'echo $$ > "$0/cgroup.procs"; exec "$@"' "$group" \
      "$ddltraind" "${small[@]}" "$@"
  }
  in_group --batch_size=500
  refused_for 500
  [[ $refusal == *" GB are left in the control group "*"/ddltraind-memory-$$: the largest that fits is "* ]]
  local largest=$fits
  in_group --batch_size=$((largest + 3)) # some of the group's pages come and go
  refused_for $((largest + 3))
  in_group --batch_size="$largest"
  if [ "$status" -eq 78 ]; then # pages that came meanwhile: then one or two images less fit
    refused_for "$largest"
    [ "$fits" -ge $((largest - 2)) ]
    in_group --batch_size="$fits"
  fi
  expect_status 0 "$status: $messages"
  [ -e run/checkpoints/step-0000000001 ]
}
