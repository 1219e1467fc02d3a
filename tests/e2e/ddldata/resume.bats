#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A conversion that is killed, stopped, or out of room goes on, and makes what an undisturbed one makes.

load common

require_strace() {
  strace -o /dev/null true 2> /dev/null || skip "strace is missing, or may not trace here"
}

# disturbed FAULT DATA_DIR: a conversion in which strace lets FAULT happen, as in "renameat:signal=KILL:when=3".
disturbed() {
  run --separate-stderr timeout 60 strace -f -o trace -e trace="${1%%:*}" -e signal=none -e "inject=$1" \
    "$ddldata" convert "$2" --train "$images/train" --shards 4 --threads 1
  echo "$status: $output: $stderr"
}

goes_on() {
  expect=0 convert "$1" --train "$images/train" --shards 4 --threads 1
  same_bytes whole "$1"
}

@test "killed at any file that it syncs or renames" {
  require_strace
  convert whole --train "$images/train" --shards 4
  local call number kills=0
  for call in renameat fsync; do
    for number in 1 2 3 4 5 6 7; do
      rm -rf set
      disturbed "$call:signal=KILL:when=$number" set
      [ "$status" -eq 137 ]
      [ ! -e set/ddldata.manifest ]
      goes_on set
      kills=$((kills + 1))
    done
  done
  [ "$kills" -eq 14 ]
  # Beyond: the call is not made.
  rm -rf set
  disturbed renameat:signal=KILL:when=8 set
  [ "$status" -eq 0 ]
}

@test "a signal ends it in order, 75" {
  require_strace
  convert whole --train "$images/train" --shards 4
  for signal in TERM INT HUP; do
    rm -rf set
    disturbed "renameat:signal=$signal:when=4" set
    [ "$status" -eq 75 ]
    [[ $stderr == *"ddldata: stopped by a signal; what is whole stays in set, and the same command continues with the rest" ]]
    [ -z "$(find set -name '*.tmp')" ]
    [ "$(find set -name 'train-*' | wc -l)" -eq 2 ]
    goes_on set
    [ "$output" = "set: 60 training and 0 validation images of 5 classes in 4 files, 2 of them from before" ]
  done
}

@test "under nohup a hang-up does not end it" {
  require_strace
  # timeout and strace handle signals, and would give it the usual effect of SIGHUP.
  printf '%s\n' '#!/bin/sh' "trap '' HUP" "exec '$ddldata' \"\$@\"" > ignoring
  chmod 755 ignoring
  ddldata=./ignoring disturbed "renameat:signal=HUP:when=3" set
  [ "$status" -eq 0 ]
  [ "$(find set -name 'train-*' | wc -l)" -eq 4 ]
}

@test "a full disk is named, 71" {
  require_strace
  convert whole --train "$images/train" --shards 4
  local number=2 file
  for file in labels.txt train-00000-of-00004 train-00001-of-00004; do
    rm -rf set
    disturbed "fsync:error=ENOSPC:when=$number" set
    [ "$status" -eq 71 ]
    [[ $stderr == *"ddldata: cannot write set/$file: No space left on device"* ]]
    [ -z "$(find set -name '*.tmp')" ]
    goes_on set
    number=$((number + 1))
  done
}

@test "a limit of file sizes is an error, not a death" {
  convert whole --train "$images/train" --shards 4
  run -71 --separate-stderr bash -c "ulimit -f 4; '$ddldata' convert set --train '$images/train' --shards 4"
  [[ $stderr == *"File too large; what is whole stays"* ]]
  goes_on set
}

@test "two conversions do not write to one directory, 78" {
  mkdir set
  exec 9< ./set
  flock -n 9
  refused 78 "another ddldata writes to set" set --train "$images/train"
  exec 9<&-
  expect=0 convert set --train "$images/train"
}

@test "the progress of a long conversion is a line now and then, and a bar on a terminal" {
  run -0 script -qec "'$ddldata' convert set --train '$images/train' --shards 4" /dev/null
  [[ $output == *"[============] 60/60 images 100.0 % "*" images/s "*" MB/s eta 0:00:00"* ]]
  TERM=dumb run script -qec "'$ddldata' convert dumb --train '$images/train' --shards 4" /dev/null
  [[ $output == *T*" 60/60 images 100.0 % "* ]]
  [[ $output != *$'\x1b'* ]]
  convert again --train "$images/train" --shards 4
  [[ $messages == *T*" 60/60 images 100.0 % "*" eta 0:00:00"* ]]
  [[ $messages != *$'\r'* ]]
}
