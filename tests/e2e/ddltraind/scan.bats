#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Record headers are read once on a node, and what is kept of that changes nothing but the time.

load common

# All data files are so old that what is found in them is kept.
settled() {
  local newest
  newest=$(stat -c %Z "$1"/*-of-* | sort -n | tail -n 1)
  [ $(($(date +%s) - newest)) -ge 3 ]
}

# scan RANKS OPTIONS...: a short run, which prints its losses.
scan() {
  local ranks=$1
  shift
  expect=0 train "$ranks" --num_iter=3 --mode=train --display_every=1 --results_dir="run$((runs += 1))" "$@"
}

@test "of two ranks one reads the record headers, and in the next run none" {
  wait_for 10 settled "$data"
  kept=$TMPDIR/ddltraind-$(id -u)
  before=$(ls -lA --full-time "$data")
  scan 2
  [[ $messages == *"records of 8 files found in "*" s: 200 headers, 0.0 MB, read by 1 of 2 ranks"* ]]
  expected=$(losses <<< "$output")
  [ -n "$expected" ]
  scan 2
  [[ $messages == *"records of 8 files found in "*" s: an earlier scan is in $kept"* ]]
  [ "$(losses <<< "$output")" = "$expected" ]
  scan 2 --scan_cache=off
  [[ $messages == *" s: 400 headers, 0.0 MB, read by 2 of 2 ranks"* ]]
  [ "$(losses <<< "$output")" = "$expected" ]
  [ "$(stat -c %a "$kept")" = 700 ]
  [ "$(ls -lA --full-time "$data")" = "$before" ]
}

@test "with index files no header is read, and nothing is kept" {
  "$DDLRUN_BUILD/bin/ddldata" index "$data" idx
  scan 2 --data_idx_dir=idx
  [[ $messages == *"records of 8 files found in "*" s: index files are in idx"* ]]
  [ ! -e "$TMPDIR/ddltraind-$(id -u)" ]
}

@test "what is kept is damaged, and of a shard that has been replaced: the run is as without it" {
  cp -r "$data" own
  wait_for 10 settled own
  scan 1 --data_dir=own --scan_cache=off
  expected=$(losses <<< "$output")
  scan 1 --data_dir=own
  file=$(echo "$TMPDIR"/ddltraind-*/scan-*)
  python3 "$damage" checksum "$file"
  scan 1 --data_dir=own
  [[ $messages == *" s: 200 headers, "*" read by 1 of 1 rank"* ]]
  [ "$(losses <<< "$output")" = "$expected" ]

  # The same images in other files.
  rm own/ddldata.manifest
  mv own/train-00000-of-00008 held
  mv own/train-00001-of-00008 own/train-00000-of-00008
  mv held own/train-00001-of-00008
  scan 1 --data_dir=own
  [[ $messages == *" s: 50 headers, "* ]]
  swapped=$(losses <<< "$output")
  [ "$swapped" != "$expected" ]
  scan 1 --data_dir=own --scan_cache=off
  [ "$(losses <<< "$output")" = "$swapped" ]
}

@test "a directory that others may write to is not used, and that is said" {
  kept=$TMPDIR/ddltraind-$(id -u)
  mkdir -m 777 "$kept"
  scan 1
  [[ $messages == *"what the scan found is not kept: cannot use the directory $kept: it is open to others: chmod 700"* ]]
  [ -z "$(ls -A "$kept")" ]
}

@test "a value that --scan_cache cannot have, 64" {
  expect=64 train 1 --num_iter=3 --scan_cache=maybe
  [[ $messages == *"--scan_cache: needs one of auto, off, not 'maybe'"* ]]
}
