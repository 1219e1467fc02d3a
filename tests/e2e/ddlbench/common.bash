# SPDX-License-Identifier: Apache-2.0
# What the tests of ddlbench share: the smallest network, a few steps, and a directory for each test.

load ../common

setup() {
  enter_test_directory
  ddlbench="$DDLRUN_BUILD/bin/ddlbench"
  # 20 steps that no log has, and 5.
  matrix=(--arch=resnet_tiny --batch_size=4 --steps=25 --ddlrun=--oversubscribe)
  small=(-- --image_size=32 --classes=10 --backend=cpu --threads=1)
}

# No test leaves a process or a run directory behind, whatever became of its ranks.
teardown() {
  [ -z "$(ranks_here)" ] || {
    echo "left behind: $(ranks_here)"
    return 1
  }
  require_no_run_directory
}

# The process ids of the ranks that run in this directory.
ranks_here() {
  local pid
  for pid in $(pgrep -x ddltraind); do
    [ "$(readlink "/proc/$pid/cwd")" != "$BATS_TEST_TMPDIR" ] || echo "$pid"
  done
}

# sweep OPTIONS... : a sweep of the small network into the directory w: status, standard output in $output, the rest in $messages.
sweep() {
  run_separate timeout 120 "$ddlbench" sweep "${matrix[@]}" "$@" w "${small[@]}"
}

# extract OPTIONS...: the same for ddlbench extract.
extract() {
  run_separate timeout 60 "$ddlbench" extract "$@"
}

# log NAME LINES SPEED RANKS: a log of so many steps that count, in which each has this speed, at batch 4.
log() {
  local i
  mkdir -p "$(dirname "$1")"
  {
    echo ":::NVLOGv0.2.3 resnet 1.5 (runner.py:373) Num GPUs: $4"
    for ((i = 0; i < $2; i++)); do
      echo "DLL 2020-07-01 10:00:0$((i % 10)).000000 - (0, $i) imgs_per_sec : $3  cross_entropy : 7.0 "
    done
  } > "$1"
}
