#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Training over links of a rate, on two nodes of four ranks whose computation is replaced by waits: how much of the sums backward hides,
# beside what scaling/ predicts of these links. tests/scaling/emulated/cases is the long form.

# shellcheck disable=SC2016 # the login node expands, not we
# shellcheck disable=SC2154 # set by bats and common.bash

load common

# What is given up for the rest of the machine, in per cent of a step: its other work takes the cores away for milliseconds.
slack=5

setup_file() {
  command -v tc > /dev/null || skip_all "tc is not installed (iproute2)" || return 0
  [ -x "${DDLRUN_BUILD:-}/tests/emulated_training" ] || skip_all "emulated_training is not in this build: it needs MPI" || return 0
  [[ $(mpirun --version 2> /dev/null) == *"(Open MPI) 4."* ]] || skip_all "how ranks wait is made for Open MPI 4" || return 0
  start_cluster 2 4 8
  has_cluster || return 0
  tc_works || skip_all "this kernel has no token buckets (sch_tbf)" || return 0
  # Ranks, as slurmd, go before what else this machine does, where that is allowed.
  cluster in sh -c 'renice -n -15 -p $(pidof slurmd)' > /dev/null || :
  mapfile -t mpi < <(grep -v '^#' "$BATS_TEST_DIRNAME/../scaling/emulated/mpi.env")
  export mpi_variables="${mpi[*]}" between=18750000 inside=50000000
}
teardown_file() { stop_cluster; }
setup() { empty_home; }

tc_works() { cluster at n1 sh -c 'tc qdisc add dev lo root tbf rate 1gbit burst 64kb limit 1mb && tc qdisc del dev lo root' 2> /dev/null; }

links() { "$BATS_TEST_DIRNAME/../scaling/emulated/links" "$cluster_dir" "$@"; }

# trained NAME=VALUE...: a step of a second, and links a quarter of Bede's in that proportion, so that sums are a quarter of a step.
trained() {
  # shellcheck disable=SC2086 # words
  run --separate-stderr hpc env $mpi_variables salloc --quiet -N2 --gres=gpu:4 ddlrun "$DDLRUN_BUILD/tests/emulated_training" \
    stretch=5 divisor=32 steps=5 warmup=1 inside=$inside between=$between "$@"
  echo "$output"
  [ "$status" -eq 0 ] || { echo "$stderr"; return 1; }
}

# number NAME [OBJECT]: of the JSON that was printed.
number() {
  python3 -c 'import json, sys
found = json.loads(sys.argv[1])
for name in sys.argv[2:]: found = found[name]
print(found)' "$output" "$@"
}

# within PERCENT A B
within() { awk -v most="$1" -v a="$2" -v b="$3" 'BEGIN { exit !(a / b < 1 + most / 100 && b / a < 1 + most / 100) }'; }

below() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }'; }

@test "backward hides the sums, and without overlap they cost what is predicted" {
  links 2 "$between" $((4 * inside))
  trained
  within $slack "$(number step_seconds)" "$(number predicted step_seconds)"
  below 0.95 "$(number efficiency)"
  trained overlap=0
  within $slack "$(number step_seconds)" "$(number predicted step_seconds)"
  below "$(number efficiency)" 0.85
}

@test "one link of half the rate makes all sums take twice as long" {
  links 2 "$between" $((4 * inside))
  links n2 $((between / 2))
  between=$((between / 2)) trained overlap=0
  within $slack "$(number step_seconds)" "$(number predicted step_seconds)"
  below "$(number efficiency)" 0.7
}

@test "a link that loses half its rate while ranks train is named in the log" {
  links 2 "$between" $((4 * inside))
  (
    sleep 25 # of which the start takes some, and then a hundred steps of 0.13 s
    links n2 $((between / 2))
  ) 3>&- & # bats waits for who holds it
  # shellcheck disable=SC2086 # words
  run --separate-stderr hpc env $mpi_variables salloc --quiet -N2 --gres=gpu:4 ddlrun "$DDLRUN_BUILD/tests/emulated_training" \
    step_ms=100 stretch=1 divisor=360 steps=320 overlap=0 inside=$inside between=$between
  wait
  echo "$output" "$stderr"
  [ "$status" -eq 0 ]
  [[ $stderr =~ "for 100 steps ranks have waited for their sums "[0-9.]+" ms in each, "[0-9.]+" before" ]]
  [[ $stderr =~ "rank "[04]" on n"[12]" hears from rank "[73]" on n"[12]" at "[0-9.]+" MB/s, 1"[0-9.]+" MB/s when training began" ]]
}

@test "a setting that there is not is refused" {
  run "$DDLRUN_BUILD/tests/emulated_training" stretsch=5
  [ "$status" -eq 64 ]
  [[ $output == *"'stretsch=5' is none of what the head of emulated_training.cc lists" ]]
}
