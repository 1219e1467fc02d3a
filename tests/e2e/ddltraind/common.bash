# SPDX-License-Identifier: Apache-2.0
# What the tests of ddltraind share: a small data set for each file of tests, and runs of the smallest network
# that cannot last for ever.

load ../common

setup_file() {
  export data="$BATS_FILE_TMPDIR/data"
  "$DDLRUN_BUILD/bin/ddldata" synth --classes 10 --images 200 --validation_images 40 --size 64-80 "$data"
}

setup() {
  enter_test_directory
  ddlrun="$DDLRUN_BUILD/bin/ddlrun"
  ddltraind="$DDLRUN_BUILD/bin/ddltraind"
  damage="$BATS_TEST_DIRNAME/damage.py"
  safetensors="$BATS_TEST_DIRNAME/safetensors.py"
  small=(--arch=resnet_tiny --data_dir="$data" --classes=10 --image_size=32 --batch_size=8 --iter_unit=batch
    --lr_warmup_epochs=0 --threads=1)
}

# No test leaves a process or a run directory behind, whatever became of its ranks.
teardown() {
  local left
  left=$(ranks_here)
  [ -z "$left" ] || {
    echo "left behind: $left"
    kill -KILL $left
    return 1
  }
  require_no_run_directory
}

# unnumbered COPY: the data set with files whose names do not tell how many there are, so that one can be left out.
unnumbered() {
  local file
  cp -r "$data" "$1"
  rm "$1/ddldata.manifest"
  for file in "$1"/*-of-*; do mv "$file" "${file%-of-*}"; done
}

# train RANKS OPTIONS...: a run of the small network: status, standard output in $output, the rest in $messages. $limit: how many
# seconds it may last, if not 60.
train() {
  local ranks=$1
  shift
  run_separate timeout "${limit:-60}" "$ddlrun" -n "$ranks" --oversubscribe ${launcher:+--launcher=$launcher} \
    "$ddltraind" "${small[@]}" "$@"
}

# The same in the background: its process id is $job, its output in the files out and err.
start_training() {
  local ranks=$1
  shift
  timeout --foreground "${limit:-60}" "$ddlrun" -n "$ranks" --oversubscribe ${launcher:+--launcher=$launcher} \
    "$ddltraind" "${small[@]}" "$@" > out 2> err 3>&- &
  watch=$!
  # Signals are for ddlrun, not for timeout.
  wait_for 10 eval 'job=$(pgrep -P "$watch" -x ddlrun)'
}

# Waits for what start_training has started, and shows its messages: its exit code in $status, which is $expect if that is set.
end_of_training() { end_of "$watch" err; }

# The losses of all steps of an output, one in a line (with --display_every=1).
losses() {
  sed -n 's/.*) total_loss: //p'
}

# The process ids of the ranks that run in this directory; ranks_here RANK: of this one.
ranks_here() {
  local pid
  for pid in $(pgrep -x ddltraind); do
    [ "$(readlink "/proc/$pid/cwd")" = "$BATS_TEST_TMPDIR" ] || continue
    [ $# -eq 0 ] || tr '\0' '\n' < "/proc/$pid/environ" | grep -qx "RANK=$1" || continue
    echo "$pid"
  done
}
