#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What was built here, on a kernel that lacks the system calls of the last years (RHEL 8 has Linux 4.18).

load common

setup() {
  enter_test_directory
  on_old_kernel=$DDLRUN_BUILD/tests/on_old_kernel
  "$on_old_kernel" true || skip "system calls cannot be filtered here"
}

@test "the filter answers as the old kernel does" {
  run -1 "$on_old_kernel" python3 -c 'import os; os.pidfd_open(os.getpid())'
  [[ $output == *"Function not implemented"* ]]
}

@test "ranks start, and their standard input, output and exit codes pass" {
  run_ddlrun_here() { run_separate "$on_old_kernel" "$DDLRUN_BUILD/bin/ddlrun" "$@"; }
  run_ddlrun_here -n 2 --oversubscribe --launcher=local sh -c 'echo "$RANK/$WORLD_SIZE $(cat)"' <<< "input"
  [ "$status" -eq 0 ]
  [ "$(sort <<< "$output")" = $'0/2 input\n1/2 ' ]
  run_ddlrun_here -n 2 --oversubscribe --launcher=local sh -c 'exit $((RANK + 3))'
  [ "$status" -eq 3 ] || [ "$status" -eq 4 ]
  expect=0 run_ddlrun_here -n 2 --check-only
}

@test "kill -9 of ddlrun leaves no rank and no run directory" {
  "$on_old_kernel" "$DDLRUN_BUILD/bin/ddlrun" -n 2 --oversubscribe --launcher=local \
    sh -c 'sleep 600 & echo "$$ $!" > "pids$RANK.new"; mv "pids$RANK.new" "pids$RANK"; wait' 2> /dev/null 3>&- &
  local pid=$!
  wait_for 10 test -e pids0
  wait_for 10 test -e pids1
  kill -KILL "$pid"
  wait_for 10 have_ended $(cat pids0 pids1)
  wait_for 10 no_run_directory
}

@test "two ranks train, write a checkpoint and go on from it" {
  "$on_old_kernel" "$DDLRUN_BUILD/bin/ddldata" synth --classes 10 --images 40 --size 64-80 data
  for launcher in $(LAUNCHERS='local mpirun' launchers); do
    command=("$on_old_kernel" "$DDLRUN_BUILD/bin/ddlrun" -n 2 --oversubscribe "--launcher=$launcher" "$DDLRUN_BUILD/bin/ddltraind"
      --arch=resnet_tiny --data_dir=data --classes=10 --image_size=32 --batch_size=8 --iter_unit=batch --lr_warmup_epochs=0
      --threads=1 --mode=train --results_dir="$launcher")
    run -0 timeout 60 "${command[@]}" --num_iter=2
    run -0 timeout 60 "${command[@]}" --num_iter=3
    [ -e "$launcher/checkpoints/step-0000000003/manifest.json" ]
  done
}
