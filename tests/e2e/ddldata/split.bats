#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# ddldata split: another number of files, or a validation part, of a data set that there is.

load common

# split FROM_DIR DATA_DIR OPTIONS...: status, standard output in $output, the rest in $messages.
split() {
  run_separate timeout 60 "$ddldata" split "$@"
  echo "$status: $output: $messages"
}

@test "another number of files: the same images, and a training goes on with them" {
  expect=0 split "$BATS_FILE_TMPDIR/data" set --shards 3 --validation_shards 2
  [ "$output" = "set: 60 training and 20 validation images in 5 files" ]
  [ "$(ls set)" = "$(printf '%s\n' ddldata.conversion ddldata.manifest train-0000{0,1,2}-of-00003 \
    validation-0000{0,1}-of-00002)" ]
  # All records in one piece are what they were.
  cmp <(cat "$BATS_FILE_TMPDIR"/data/train-*) <(cat set/train-*)
  cmp <(cat "$BATS_FILE_TMPDIR"/data/validation-*) <(cat set/validation-*)
  trains_on set
}

@test "a validation part of training images" {
  convert whole --train "$images/train" --shards 4
  expect=0 split whole set --validation_images 12
  [ "$output" = "set: 48 training and 12 validation images in 5 files" ]
  trains_on set
  run "$ddldata" stats set
  [[ $output == *"0 images more than once; 0 in both splits"* ]]
  split whole again --validation_images 12 --threads 1
  same_bytes set again
}

@test "killed at any file that it syncs or renames, it goes on" {
  strace -o /dev/null true 2> /dev/null || skip "strace is missing, or may not trace here"
  split "$BATS_FILE_TMPDIR/data" whole --shards 3
  for call in renameat fsync; do
    for number in 1 2 3 4 5 6; do
      rm -rf set
      run -137 timeout 60 strace -f -o trace -e trace="$call" -e signal=none -e "inject=$call:signal=KILL:when=$number" \
        "$ddldata" split "$BATS_FILE_TMPDIR/data" set --shards 3 --threads 1
      [ ! -e set/ddldata.manifest ]
      expect=0 split "$BATS_FILE_TMPDIR/data" set --shards 3
      same_bytes whole set
    done
  done
}

@test "refusals" {
  local data="$BATS_FILE_TMPDIR/data"
  expect=64 split "$data"
  [[ $messages == *"DATA_DIR"* ]]
  expect=64 split "$data" set --shards 61
  [[ $messages == "ddldata: --shards must be at most 60, not 61: a file needs an image" ]]
  expect=64 split "$data" set --validation_images 5
  [[ $messages == *"already has validation-* files: --validation_images makes some of train-* files alone" ]]
  expect=65 split nowhere set
  [[ $messages == *"cannot read the data directory nowhere: No such file"* ]]
  expect=64 split "$data" "$data" --shards 2
  [[ $messages == *"already has data files ("*") that no conversion has written: give another directory" ]]
  [ ! -e set ]
  mkdir set
  exec 9< ./set
  flock -n 9
  expect=78 split "$data" set
  [[ $messages == *"another ddldata writes to set: wait for it, or give another directory" ]]
}

@test "equal images are in one part, and each class keeps one for training" {
  local class number
  for class in 1 2 3; do
    mkdir -p tree/$class
    for number in 0 1 2 3; do
      cp "$images/train/n0000000$class/n0000000${class}_$number.JPEG" "tree/$class/$number.jpg"
      cp "tree/$class/$number.jpg" "tree/$class/again$number.jpg"
    done
  done
  mkdir tree/4
  cp "$images/train/n00000004/n00000004_0.JPEG" tree/4
  "$ddldata" convert whole --train tree
  for seed in 1 2 3 11; do
    expect=0 split whole "set$seed" --validation_images 10 --seed "$seed"
    [ "$output" = "set$seed: 15 training and 10 validation images in 2 files" ]
    [[ $messages == *"ddldata: note: equal images are drawn together, and each class is left one for training"* ]]
    run "$ddldata" stats "set$seed"
    [[ $output == *"12 images more than once; 0 in both splits"* ]]
    [ "$("$ddldata" stats --json "set$seed" | jq .splits.train.classes)" -eq 4 ]
    expect=0 split whole "set$seed" --validation_images 10 --seed "$seed"
  done
  expect=0 split whole most --validation_images 23
  [[ $messages == *"each class is left one for training: 18 images instead of 23"* ]]
}

@test "an empty file says what to do, which then helps" {
  mkdir set
  cp "$BATS_FILE_TMPDIR"/data/labels.txt set 2> /dev/null || true
  "$ddldata" split "$BATS_FILE_TMPDIR/data" whole --shards 2
  cp whole/train-00000-of-00002 set/train-00000-of-00003
  cp whole/train-00001-of-00002 set/train-00001-of-00003
  : > set/train-00002-of-00003
  expect=65 run_separate "$ddldata" verify --classes 5 set
  [[ $output == *"set/train-00002-of-00003 is empty: it has no record; get it again, or, if it was made so, as of fewer images than files, remove it and run: ddldata manifest --part set"* ]]
  rm set/train-00002-of-00003
  "$ddldata" manifest --part set
  trains_on set
}
