#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Ranks that were not started alike: refused before the first step, by the rank that is unlike the others.

load common

# In front of ddltraind: the rank $odd evaluates $unlike first.
unlike_setup() {
  require_mpirun
  cat > unlike << 'END'
#!/bin/sh
[ "$RANK" != "$odd" ] || eval "$unlike"
exec "$real_ddltraind" "$@"
END
  chmod +x unlike
  export real_ddltraind=$ddltraind odd=1 unlike=
  ddltraind=$PWD/unlike
  launcher=mpirun
}

# refused TEXT CODE [OPTIONS...]: of two ranks, rank 1 does what CODE says first.
refused() {
  local text=$1
  unlike=$2
  shift 2
  expect=78 train 2 --num_iter=3 --results_dir=run "$@"
  [[ $(grep "^ddltraind: rank $odd on " <<< "$messages") == "ddltraind: rank $odd on "*": has "$text ]]
  [ ! -e run ]
}

# option NAME OTHER USUAL: one that rank 1 has otherwise.
option() {
  refused "--$1=$2, but rank 0 on "*" has --$1=$3: start all ranks with one command line and program" \
    "set -- \"\$@\" --$1=$2"
}

@test "an option with another value: what each has, 78" {
  unlike_setup
  option seed 2 1
  option batch_size 4 8
  option lr_init 0.2 0.1
  option momentum 0.5 0.9
  option optimizer lars sgd
  option recipe nvidia none
  option image_size 64 32
  option classes 11 10
  option num_iter 4 3
}

@test "options that decide which calls ranks make together, 78" {
  unlike_setup
  option mode evaluate train_and_evaluate
  option checkpoint_every 1 1000
  option resume never auto
  option hang_floor_seconds 0 60
  refused "--lr_schedule=cosine and --use_cosine_lr, but rank 0 on "*" has --lr_schedule=steps and no --use_cosine_lr: "* \
    'set -- "$@" --use_cosine_lr'
  refused "--init_from, but rank 0 on "*" has no --init_from: "* 'set -- "$@" --init_from=weights'
  refused "--iter_unit=epoch, but rank 0 on "*" has --iter_unit=batch: "* 'set -- "$@" --iter_unit=epoch'
}

@test "another back end, 78" {
  unlike_setup
  "$real_ddltraind" --version | grep -qw cpu || skip "this build has no oneDNN"
  refused "--backend=reference, but rank 0 on "*" has --backend=cpu: "* \
    'set -- "$@" --backend=reference' --backend=cpu
}

@test "the same back end with other instructions, 78" {
  unlike_setup
  "$real_ddltraind" --version | grep -qw cpu || skip "this build has no oneDNN"
  grep -qw avx2 /proc/cpuinfo || skip "this processor has nothing that can be left out"
  refused "the back end cpu (oneDNN "*", SSE4.1 beside loops of "*", fp32), but rank 0 on "*" has the back end cpu \
(oneDNN "*", fp32): run on nodes of one kind"* 'export ONEDNN_MAX_CPU_ISA=SSE41' --backend=cpu
}

@test "a data set with one shard fewer, 78" {
  unlike_setup
  unnumbered whole
  unnumbered less
  rm less/train-00005
  refused "no train-00005, but rank 0 on "*" has train-00005 of "*" bytes with 25 records "*": \
give all ranks the same files, whole, in their --data_dir" 'set -- "$@" --data_dir=less' --data_dir=whole
  # As odd is who has one more.
  refused "train-00005 of "*", but rank 0 on "*" has no train-00005: "* \
    'set -- "$@" --data_dir=whole' --data_dir=less
}

@test "another data set, or one other file, in training and in evaluation, 78" {
  unlike_setup
  "$DDLRUN_BUILD/bin/ddldata" synth --classes 10 --images 200 --validation_images 40 --size 64-80 --seed 7 other
  refused "train-00000-of-00008 of "*", train-00001-of-00008 of "*" and train-00002-of-00008 of "*"; "*" more differ: "* \
    'set -- "$@" --data_dir=other'
  cp -r "$data" mixed
  rm mixed/ddldata.manifest # which would tell of it earlier
  cp other/train-00003-of-00008 mixed
  refused "train-00003-of-00008 of "*", but rank 0 on "*" has train-00003-of-00008 of "*": "* \
    'set -- "$@" --data_dir=mixed'
  cp "$data/train-00003-of-00008" mixed
  cp other/validation-* mixed
  refused "validation-00000-of-"* 'set -- "$@" --data_dir=mixed' --mode=train_and_evaluate
  refused "no --data_dir, but rank 0 on "*" has --data_dir: "* \
    'shift 2; set -- --arch=resnet_tiny "$@"'
}

@test "the odd one of several ranks is the one unlike most, and ddlrun names it last" {
  unlike_setup
  odd=0
  unlike='set -- "$@" --seed=9'
  expect=78 train 3 --num_iter=3 --results_dir=run
  [[ $messages == *"ddltraind: rank 0 on "*": has --seed=9, but rank 1 on "*" has --seed=1: "* ]]
  [[ $(tail -n 1 <<< "$messages") == *"the job failed: rank 0 on "*"78"* ]]
}

@test "the same where ranks meet in shared memory" {
  unlike_setup
  launcher=local
  option seed 2 1
  expect=78 train 2 --num_iter=3 --results_dir=run --dry_run
}

@test "ranks may have threads and copies of the data of their own" {
  unlike_setup
  cp -r "$data" copy
  unlike='set -- "$@" --threads=2 --data_threads=1 --prefetch=3 --display_every=1 --data_dir=copy'
  expect=0 train 2 --num_iter=3 --results_dir=run
}
