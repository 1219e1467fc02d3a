#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# ddlbench repeat with a real training, and ddlbench compare of what it wrote.

load common

# repeat OPTIONS...: the small network as Mila's convnet: status, $output, $messages.
repeat() {
  run_separate timeout 120 "$ddlbench" repeat --arch=resnet_tiny --batch_size=4 --repeat=14 --number=3 --ddlrun=--oversubscribe \
    "$@" w "${small[@]}"
}

# There is one, and its name, its log and what is in it say that the run has failed.
require_failed_report() {
  [ "$(find w -name 'fast*.json')" = "$(find w -name 'fast.convnet.R0.D0.FAIL.*.json')" ]
  [ "$(find w -name 'fast.convnet.R0.D0.FAIL.*.log' | wc -l)" -eq 1 ]
  [ "$(find w -name 'fast*.log' | wc -l)" -eq 1 ]
  [ "$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["completed"])' w/fast*.json)" = False ]
}

@test "a report in Mila's form, whose numbers are those of the raw step times" {
  expect=0 repeat --devices=2
  [[ $output == *"| 10 (warm-up) "*"| 11  "*"| train  | mean "*"--------"*'"name": "convnet"'*"Saving report to w/fast.convnet.R0.D0,1."*.json ]]
  # A line for each observation, while it runs.
  [ "$(grep -cE '^\[ +[0-9]+/ 14\] \| ETA: +[0-9.]+ min \| Batch Loss +[0-9.]+$' <<< "$output")" -eq 14 ]
  [[ $output == "[  0/ 14] | ETA: "*"[ 13/ 14] | ETA:   0.00 min | Batch Loss "*"| observation | s "* ]]
  # What mlbench-report looks for.
  [ "$(python3 -c 'import glob; print(len(glob.glob("w/fast[_.]*.json")), len(glob.glob("w/**/fast[_.]*.json")))')" = "1 0" ]
  python3 - w/fast.convnet.*.json w/fast.convnet.*.log << 'END'
import json, math, re, sys
report = json.load(open(sys.argv[1]))
log = open(sys.argv[2]).read()
seconds = [4 / float(speed) for speed in re.findall(r"\) imgs_per_sec: (\S+)$", log, re.M)]
losses = [float(loss) for loss in re.findall(r"\) cross_entropy: (\S+)$", log, re.M)]
assert len(seconds) == 42, len(seconds)
counted = [sum(seconds[3 * i:3 * i + 3]) for i in range(14)][10:]
mean = sum(counted) / 4
sd = math.sqrt(sum((value - mean) ** 2 for value in counted) / 4)
train, item = report["train"], report["train_item"]
for found, expected in ((train["avg"], mean), (train["sd"], sd), (train["min"], min(counted)), (train["max"], max(counted)),
                        (item["avg"], 12 / mean), (item["min"], 12 / max(counted)), (item["max"], 12 / min(counted)),
                        (item["range"], item["max"] - item["min"])):
    assert math.isclose(found, expected, rel_tol=1e-9), (found, expected)
assert train["count"] == 4 and train["unit"] == "s" and item["unit"] == "items/sec", report
assert report["batch_loss"] == losses, report["batch_loss"]
# What mlbench-report needs of a report.
assert all(int(device) >= 0 for device in report["vcd"].split(",")), report["vcd"]
assert report["batch_size"] == 4 and report["devices"] == 2 and report["arch"] == "resnet_tiny", report
assert len(report["unique_id"]) == 64 and report["completed"] is True and report["cuda"] is False, report
END

  # The same beside a target; the second report makes a spread known.
  expect=0 repeat --devices=2 --run_id=1
  printf 'bench,target,perf_target,sd_target\nconvnet,0.01,0.5,10\nvae,7500.00,0.5,0.05\n' > targets.csv
  run -0 --separate-stderr "$ddlbench" compare --targets=targets.csv w
  [[ $output == *"| bench  "*"| convnet              | 0.01      | "*" | 2    | yes  |" ]]
  [ "$(wc -l <<< "$output")" -eq 3 ]
}

@test "a run that fails gives its exit code, and a report that says so" {
  small=(-- --image_size=32 --classes=10 --backend=cpu --no_such_option)
  expect=64 repeat
  [[ $messages == *"the run failed: exit code 64; the last line: "*"what there is of it is in w/fast.convnet.R0.D0.FAIL."*".json"* ]]
  require_failed_report
  [ "$(python3 -c 'import json, sys; print("train" in json.load(open(sys.argv[1])))' w/fast*.json)" = False ]
}

@test "a run that ends early has a report of what there was, which is not compared" {
  small+=(--run_iter=35)
  expect=65 repeat
  [[ $messages == *".log:"*"the log ends after 35 steps of 42"* ]]
  require_failed_report
  python3 - w/fast*.json << 'END'
import json, sys
report = json.load(open(sys.argv[1]))
assert report["train"]["count"] == 1 and report["train_item"]["avg"] > 0, report
assert len(report["batch_loss"]) == 35, report
END
  printf 'bench,target\nconvnet,215\n' > t.csv
  run -65 --separate-stderr "$ddlbench" compare --targets=t.csv w
  [[ $stderr == *".FAIL."*": it is of a run that has failed; it is left out" ]]
}

# Each copy says what it was given; a third CPU would be shared.
@test "copies at once: a report of each, on a device and cores of its own" {
  [ "$(nproc)" -ge 2 ] || skip "needs two cores"
  CUDA_VISIBLE_DEVICES=4,6 run --separate-stderr timeout 120 "$ddlbench" repeat --copies=2 --arch=resnet_tiny --batch_size=4 \
    --repeat=12 --number=2 w "${small[@]}"
  messages=$stderr
  expect_status 0 "$messages$output"
  [[ $output == *"D4 [ 11/ 12] | ETA: "* && $output == *"D6 [ 11/ 12] | ETA: "* ]]
  [ "$(grep -c "Saving report to w/fast.convnet.R0.D[46].2" <<< "$output")" -eq 2 ]
  python3 - << END
import glob, json
reports = {json.load(open(path))["vcd"]: json.load(open(path)) for path in glob.glob("w/fast[_.]*.json")}
assert sorted(reports) == ["4", "6"], reports
table = {cells[0]: float(cells[3]) for cells in
         ([cell.strip() for cell in line.split("|")[1:-1]] for line in """$output""".splitlines() if line.startswith("| "))
         if cells[0] in ("4", "6", "all")}
for vcd, report in reports.items():
    assert report["devices"] == 1 and report["batch_size"] == 4 and report["completed"], report
    assert abs(report["train_item"]["avg"] - table[vcd]) < 0.01, (report, table)
assert abs(table["4"] + table["6"] - table["all"]) < 0.02, table
assert sum(report["cpu_cores"] for report in reports.values()) == $(nproc), reports
END
}

@test "copies: one that fails does not end the others" {
  mkdir -p bin
  # The second has no such back end.
  printf '#!/bin/bash\n[ "$CUDA_VISIBLE_DEVICES" = 1 ] && set -- "$@" --backend=abacus\nexec "%s" "$@"\n' "$DDLRUN_BUILD/bin/ddltraind" \
    > bin/ddltraind
  chmod +x bin/ddltraind
  cp "$ddlbench" bin/
  expect=64 run_separate timeout 120 bin/ddlbench repeat --copies=2 --arch=resnet_tiny --batch_size=4 --repeat=12 --number=2 w "${small[@]}"
  [ "$(find w -name 'fast.convnet.R0.D0.2*.json' | wc -l)" -eq 1 ]
  [ "$(find w -name 'fast.convnet.R0.D1.FAIL.*.json' | wc -l)" -eq 1 ]
  [[ $output == *"| 0      | "*"| all    | "* ]]
}

@test "the input alone: Mila's loader" {
  "$DDLRUN_BUILD/bin/ddldata" synth --classes 10 --images 64 --validation_images 0 --size 40 DATA > data.out
  expect=0 run_separate timeout 120 "$ddlbench" repeat --name=loader --data_dir=DATA --batch_size=8 --repeat=12 --number=2 w
  [ "$(grep -cE '^\[ +[0-9]+/ 12\] \| ETA: +[0-9.]+ min $' <<< "$output")" -eq 12 ]
  python3 - w/fast.loader.R0.D0.*.json << 'END'
import json, math, sys
report = json.load(open(sys.argv[1]))
assert report["name"] == "loader" and report["batch_loss"] == [] and report["batch_size"] == 8, report
assert math.isclose(report["train_item"]["avg"], 16 / report["train"]["avg"]), report
assert report["train"]["count"] == 2 and report["data"] == "DATA" and "arch" not in report, report
END
  # A bad record in the middle.
  rm DATA/ddldata.manifest
  for file in DATA/train-*; do printf 'XXXX' | dd of="$file" bs=1 seek=200 conv=notrunc status=none; done
  run -65 --separate-stderr timeout 120 "$ddlbench" repeat --name=loader --data_dir=DATA --batch_size=8 --repeat=12 --number=2 bad
  [[ $stderr == *"DATA/train-"*"what there is of it is in bad/fast.loader.R0.D0.FAIL."* ]]
}

@test "distributed: one training on all visible devices" {
  CUDA_VISIBLE_DEVICES=0,1 run --separate-stderr timeout 120 "$ddlbench" repeat --name=convnet_distributed --arch=resnet_tiny \
    --batch_size=4 --repeat=11 --number=1 --ddlrun=--oversubscribe w "${small[@]}"
  expect_status 0 "$stderr"
  [[ $stderr == *"/ddlrun -n 2 "*"--batch_size=2 "* ]]
  [ "$(find w -name 'fast.convnet_distributed.R0.D0,1.2*.json' | wc -l)" -eq 1 ]
}

@test "compare: what is wrong is named, the rest is shown" {
  mkdir w
  printf '{"name": "convnet", "train_item": {"avg": 200.0}}' > w/fast.convnet.R0.D0.1.json
  printf '{"name": "convnet", "train' > w/fast.convnet.R0.D0.2.json
  printf 'bench,target\nconvnet,215\nvae,many\n' > t.csv
  run -65 --separate-stderr "$ddlbench" compare --targets=t.csv w nowhere
  [[ $output == *"| convnet              | 215.00    | 200.00    | -        | -      | -6.98 %  | 1    | -    |" ]]
  diff - <(echo "$stderr") << 'END'
ddlbench: t.csv:3: target is 'many', which is not a number of 0 or more; the row is left out
ddlbench: w/fast.convnet.R0.D0.2.json: it is no report of a benchmark of Mila's: it is no JSON; it is left out
ddlbench: nowhere: cannot be read: No such file or directory
END
  run -66 --separate-stderr "$ddlbench" compare --targets=none.csv w
}
