#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What a run prints and logs: lines that scripts read.

load common

@test "the standard output has the lines that users of NVIDIA's script look for" {
  expect=0 train 2 --num_iter=30 --results_dir=run
  local prefix='^:::NVLOGv0\.2\.3 resnet [0-9]+\.[0-9]+ \([a-z_]+\.py:[0-9]+\) '
  for key in imgs_per_sec cross_entropy l2_loss total_loss learning_rate; do
    [ "$(grep -cE "$prefix$key: [0-9.e-]+\$" <<< "$output")" -eq 3 ]
  done
  grep -qE "${prefix}iteration: 20\$" <<< "$output"
  grep -qE "${prefix}Top-1 Accuracy: [0-9]+\.[0-9]{3}\$" <<< "$output"
  grep -qE "${prefix}Top-5 Accuracy: [0-9]+\.[0-9]{3}\$" <<< "$output"
  # Each line is whole, and of one of the two forms.
  [ "$(grep -cvE "$prefix|^DLL 2" <<< "$output")" -eq 0 ]
}

@test "training.json has the iterations of the NVLOG lines, and the last lines are the accuracies" {
  expect=0 train 2 --num_iter=30 --results_dir=run
  [[ $(grep '^:::NVLOG' <<< "$output" | tail -n 3) =~ ^[^$'\n']*\(runner.py:610\)\ Top-1\ Accuracy:\ [0-9.]+$'\n'.*\(runner.py:611\)\ Top-5\ Accuracy:\ [0-9.]+$'\n'.*\(runner.py:630\)\ Ending\ Model\ Evaluation\ \.\.\.$ ]]
  echo "$output" > out
  python3 - run/training.json out <<'PY'
import json, re, sys
log = json.load(open(sys.argv[1]))
assert list(log) == ["run", "epoch", "iter", "event"], list(log)
names = ["iteration", "imgs_per_sec", "cross_entropy", "l2_loss", "total_loss", "learning_rate"]
assert list(log["iter"]) == ["x"] + names, list(log["iter"])
# In this order, and with these numbers; 200 images, 16 in a step: epochs of 12 steps.
lines = re.findall(r"\(training_hooks.py:10\d\) (\w+): (\S+)", open(sys.argv[2]).read())
assert [name for name, value in lines] == 3 * names, lines
for name in names:
    assert [value for epoch in log["iter"][name] for value in epoch] == [float(v) for n, v in lines if n == name], name
assert log["iter"]["iteration"] == [[0, 10], [20], []], log["iter"]["iteration"]
assert log["iter"]["x"] == [[0, 10], [8], []], log["iter"]["x"]
assert log["epoch"]["x"] == log["epoch"]["epoch"] == [0, 1], log["epoch"]
finals = re.findall(r"\(training_hooks.py:11\d\) (\w+): (\S+)", open(sys.argv[2]).read())
for name in ["final_cross_entropy", "final_l2_loss", "final_total_loss", "final_learning_rate"]:
    assert log["epoch"][name] == [float(v) for n, v in finals if n == name], name
PY
  # The same command again trains nothing, and leaves the file as it was.
  cp run/training.json before
  expect=0 train 2 --num_iter=30 --results_dir=run
  cmp before run/training.json
  mkdir -p new/training.json
  expect=71 train 1 --num_iter=2 --mode=train --results_dir=new
  [[ $messages == *"cannot write new/training.json: it is a directory; give another --results_dir"* ]]
}

@test "a precision that the back end does not have is said to be fp32" {
  expect=0 train 1 --num_iter=1 --results_dir=run --backend=cpu --precision=fp16
  [[ $messages == *"warning: --precision=fp16 is for GPUs: the back end cpu computes in fp32"* ]]
  train 1 --num_iter=1 --results_dir=plain --backend=cpu --precision=fp32
  [[ $messages != *"is for GPUs"* ]]
}

@test "log.json has a DLLL line for each step and result" {
  expect=0 train 2 --num_iter=30 --results_dir=run
  python3 - run/log.json <<'PY'
import json, sys
steps, results = [], {}
for line in open(sys.argv[1]):
    tag, text = line.split(" ", 1)
    entry = json.loads(text)
    assert tag == "DLLL", line
    if entry["type"] == "METADATA" or entry["step"] == "PARAMETER":
        continue
    assert entry["type"] == "LOG", line
    assert {"timestamp", "datetime", "elapsedtime", "step", "data"} <= entry.keys(), line
    if entry["step"]:
        steps.append(entry["step"][1])
        assert {"imgs_per_sec", "cross_entropy", "total_loss"} <= entry["data"].keys(), line
    else:
        results.update(entry["data"])
assert steps == list(range(20, 30)), steps  # the first 20 are left out, as NVIDIA's script does
assert {"train_throughput", "top1_accuracy", "top5_accuracy"} <= results.keys(), results
PY
}

@test "log.json keeps what an earlier launch of the run has written" {
  expect=0 train 1 --num_iter=4 --run_iter=2 --results_dir=run
  cp run/log.json first
  expect=0 train 1 --num_iter=4 --results_dir=run
  cmp first <(head -c "$(stat -c %s first)" run/log.json)
  [ "$(wc -l < run/log.json)" -gt "$(wc -l < first)" ]
}

@test "progress is whole lines where there is no terminal" {
  train 2 --num_iter=30 --results_dir=run
  [[ $messages != *$'\r'* ]]
  [[ $messages != *$'\e'* ]]
  [[ $messages =~ step\ 30/30\ [0-9.]+\ images/s\ loss\ [0-9.]+\ lr\ [0-9.e-]+\ eta\ 0:00:00 ]]
}
