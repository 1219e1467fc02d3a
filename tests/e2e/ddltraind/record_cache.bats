#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Records that were read once are read from the node, and that changes nothing but where they come from.

load common

# All data files are so old that they are kept.
settled() {
  local newest
  newest=$(stat -c %Z "$1"/*-of-* | sort -n | tail -n 1)
  [ $(($(date +%s) - newest)) -ge 3 ]
}

# read_with RANKS OPTIONS...: a run of 25 steps, an epoch of one rank.
read_with() {
  local ranks=$1
  shift
  expect=0 train "$ranks" --num_iter=$((25 / ranks)) --mode=train --display_every=1 --results_dir="run$((runs += 1))" "$@"
}

# Of the records that rank 0 has read, how many there were: "HITS of ALL".
hits() { sed -n 's/.*: \([0-9]* of [0-9]*\) records that rank 0 has read were in .*/\1/p' <<< "$messages"; }

@test "the second run reads what the first has read, and computes the same; whatever became of the file" {
  wait_for 10 settled "$data"
  mkdir ssd
  read_with 1
  expected=$(losses <<< "$output")
  [ -n "$expected" ]
  [[ $messages != *"records that"* ]]

  read_with 1 --record_cache=ssd
  file=$(echo ssd/ddltraind-*/records-*-train--*)
  [[ $messages == *"records are kept in $file, up to "*" GB: "*" of "*" GB are there"* ]]
  [ "$(losses <<< "$output")" = "$expected" ]
  [[ $(hits) == *" of "* ]]

  read_with 1 --record_cache=ssd --record_cache_gb=1
  [[ $messages == *"records are kept in $file, up to 1.000 GB: "* ]]
  [ "$(losses <<< "$output")" = "$expected" ]
  all=$(hits)
  [ "${all% of *}" = "${all#* of }" ]
  [ "$(stat -c %a ssd/ddltraind-*)" = 700 ]

  truncate -s 100000 "$file"
  dd if=/dev/urandom of="$file" bs=1000 count=20 seek=5 conv=notrunc status=none
  read_with 1 --record_cache=ssd
  [ "$(losses <<< "$output")" = "$expected" ]
  all=$(hits)
  [ "${all% of *}" -lt "${all#* of }" ]
}

@test "two ranks share what either has read" {
  wait_for 10 settled "$data"
  mkdir ssd
  read_with 2 --record_cache=ssd
  [ "$(find ssd -name 'records-*' | wc -l)" -eq 1 ]
  # All of the epoch was read by the one or the other.
  read_with 1 --record_cache=ssd
  all=$(hits)
  [ "${all% of *}" -ge 190 ]
}

@test "a cache that is too small says so, and the rest is read from the set" {
  wait_for 10 settled "$data"
  mkdir ssd
  read_with 1
  expected=$(losses <<< "$output")
  read_with 1 --record_cache=ssd --record_cache_gb=0.0001
  [[ $messages == *"; no more is kept: it is full"* ]]
  [ "$(losses <<< "$output")" = "$expected" ]
}

@test "a directory that is not there, 71; a limit of nothing, 64" {
  expect=71 train 1 --num_iter=3 --record_cache=none
  [[ $messages == *"--record_cache: there is no directory 'none' on this node: make it on every node, or give one"* ]]
  mkdir taken
  touch "taken/ddltraind-$(id -u)"
  expect=71 train 1 --num_iter=3 --record_cache=taken
  [[ $messages == *"--record_cache: cannot open the directory taken/ddltraind-$(id -u): Not a directory; give another one, or leave it out"* ]]
  expect=64 train 1 --num_iter=3 --record_cache_gb=5
  [[ $messages == *"--record_cache_gb needs --record_cache, the directory that it limits"* ]]
  expect=64 train 1 --num_iter=3 --record_cache=none --record_cache_gb=-1
}
