#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The logs that other programs read. read_logs.py checks them by itself, from the public formats.

# shellcheck disable=SC2154 # common.bash sets them

load common

# logs KIND FILE...: what read_logs.py finds in them.
logs() {
  python3 "$BATS_TEST_DIRNAME/read_logs.py" "$@"
}

@test "DLLogger: the options of the run, and the units" {
  train 1 --num_iter=2 --mode=train --results_dir=run --weight_decay=0.25
  [ "$status" -eq 0 ]
  grep -qE '^DLL [0-9 :.-]+ - PARAMETER mode : train  .* weight_decay : 0\.25 ' <<< "$output"
  grep -q '"step": "PARAMETER", "data": {"mode": "train", .*"weight_decay": 0.25, ' run/log.json
  grep -q '"type": "METADATA", "metric": "imgs_per_sec", "metadata": {"unit": "images/s"}}' run/log.json
}

@test "MLLOG: every key that the compliance checker of MLPerf asks for" {
  train 2 --num_iter=30 --results_dir=run --mllog=mlperf.txt --mllog_org=Durham --mllog_platform=Bede --mllog_status=onprem
  [ "$status" -eq 0 ]
  logs mllog mlperf.txt
  # 200 images, 16 in a step: 12 steps in an epoch.
  [ "$(grep -c '"key": "epoch_start"' mlperf.txt)" -eq 3 ]
  grep -q '"key": "submission_org", "value": "Durham"' mlperf.txt
  grep -q '"key": "run_stop", .*"status": "success"' mlperf.txt
  top1=$(sed -n 's/.*Top-1 Accuracy: //p' <<< "$output")
  python3 -c "import json, sys
value = [json.loads(l[9:])['value'] for l in open('mlperf.txt') if 'eval_accuracy' in l][0]
sys.exit('%.3f' % (100 * value) != '$top1')"
}

@test "MLLOG: a training that does not come to its end is aborted, and the next launch adds a run" {
  train 1 --num_iter=4 --run_iter=2 --results_dir=run --mllog=mlperf.txt
  [ "$status" -eq 0 ]
  run logs mllog mlperf.txt
  [ "$status" -eq 1 ]
  [[ $output == *"no eval_"* ]]
  grep -q '"key": "run_stop", .*"status": "aborted"' mlperf.txt
  # A launch that was killed in the middle of a line.
  mv mlperf.txt first
  printf ':::MLLOG {"namesp' > mlperf.txt
  train 1 --num_iter=4 --results_dir=run --mllog=mlperf.txt
  [ "$status" -eq 0 ]
  sed -i 1d mlperf.txt
  logs mllog mlperf.txt
}

@test "MLLOG: misuse, 64; a file that cannot be written, 71; a full disk is said" {
  train 2 --num_iter=2 --mode=train --results_dir=run --mllog=mlperf.txt
  [ "$status" -eq 64 ]
  [[ $messages == *"--mllog is the log of a training with its evaluation: it needs --mode=train_and_evaluate"* ]]
  [ ! -e run ]
  train 2 --num_iter=2 --results_dir=run --mllog=nowhere/mlperf.txt
  [ "$status" -eq 71 ]
  [[ $messages == *"cannot write 'nowhere/mlperf.txt': No such file or directory; check it, or give another --mllog"* ]]
  [ ! -e run/checkpoints ]
  train 1 --num_iter=2 --results_dir=run --mllog=/dev/full
  [ "$status" -eq 0 ]
  [ "$(grep -c "warning: /dev/full: lines are lost: No space left on device" <<< "$messages")" -eq 1 ]
  [[ $messages =~ "/dev/full: "[0-9]+" lines lost" ]]
}
