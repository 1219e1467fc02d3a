#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# ddlbench sweep on this machine, with real trainings.

load common

# In Python, by the words of DLPerf's rules: the speeds of the logs of a directory -> its JSON.
recomputed() {
  python3 - "$1" << 'END'
import json, pathlib, re, statistics, sys
cases = {}
for path in sorted(pathlib.Path(sys.argv[1]).glob("*/*.log")):
    speeds = [round(float(match.group(1)), 2)
              for match in re.finditer(r"^.* imgs_per_sec : (\d+.\d+) .*$", path.read_text("utf-8"), re.M)]
    assert len(speeds) == 5, (path, speeds)
    cases.setdefault(path.parent.name, []).append(statistics.fmean(speeds))
single = statistics.median(cases["1n1g"])
print(json.dumps({case: [statistics.fmean(speeds), statistics.median(speeds), statistics.median(speeds) / single]
                  for case, speeds in cases.items()}))
END
}

@test "two repeats of two cases end in tables and DLPerf's JSON" {
  expect=0 sweep --cases=1n1g,1n2g --repeats=2
  [[ $messages == *"[1/4] 1n1g, fp32, synthetic images, batch 4, repeat 1"*"[4/4] "*"1n2g/rtiny_b4_fp32_2.log: "*" images/s"* ]]
  [[ $output == "## bz4_fp32_synthetic: rtiny"*"| 1        | 1 "*"| 1        | 2 "*"Saving result to $PWD/w/result/bz4_fp32_synthetic_result.json"* ]]
  [ "$(find w -name '*.log' | sort)" = "$(printf '%s\n' w/bz4_fp32_synthetic/1n{1,2}g/rtiny_b4_fp32_{1,2}.log)" ]
  [ -z "$(find w -name '*.part' -o -name '*.failed')" ]
  [ -e w/bz4_fp32_synthetic/1n2g/results/rtiny_b4_fp32_1/log.json ]
  recomputed w/bz4_fp32_synthetic > expected
  python3 - expected w/result/bz4_fp32_synthetic_result.json << 'END'
import json, sys
expected = json.load(open(sys.argv[1]))
found = json.load(open(sys.argv[2]))["rtiny"]
assert found.keys() == expected.keys(), found
for case, (average, median, speedup) in expected.items():
    row = found[case]
    assert row.keys() == {"average_speed", "batch_size_per_device", "median_speed", "speedup"}, row
    assert row["batch_size_per_device"] == 4, row
    # Each is rounded to two digits once or twice.
    assert abs(row["average_speed"] - average) < 0.011 and abs(row["median_speed"] - median) < 0.011, (row, expected[case])
    assert abs(row["speedup"] - speedup) < 0.006 + 0.02 / expected["1n1g"][1] * speedup, (row, speedup)
END

  # What is there is not measured again, what was deleted is.
  rm w/bz4_fp32_synthetic/1n1g/rtiny_b4_fp32_2.log
  cp -a w/bz4_fp32_synthetic/1n1g/rtiny_b4_fp32_1.log first
  expect=0 sweep --cases=1n1g,1n2g --repeats=2
  [ "$(grep -c 'is there; delete it to measure it again' <<< "$messages")" -eq 3 ]
  [ w/bz4_fp32_synthetic/1n1g/rtiny_b4_fp32_1.log -ot first ] || cmp w/bz4_fp32_synthetic/1n1g/rtiny_b4_fp32_1.log first
  [ -e w/bz4_fp32_synthetic/1n1g/rtiny_b4_fp32_2.log ]
  # The trainer's own log has that run once.
  [ "$(grep -c '"train_throughput": ' w/bz4_fp32_synthetic/1n1g/results/rtiny_b4_fp32_2/log.json)" -eq 1 ]
}

@test "real and synthetic images, two precisions with a batch each" {
  "$DDLRUN_BUILD/bin/ddldata" synth --classes 10 --images 64 --validation_images 0 --size 40 DATA > data.out
  matrix=(--arch=resnet_tiny --steps=25)
  expect=0 sweep --cases=1n1g --repeats=1 --precision=fp32,fp16 --batch_size=4,8 --data_dir=DATA
  for directory in bz4_fp32_synthetic bz4_fp32_real bz8_fp16_synthetic bz8_fp16_real; do
    [[ $output == *"## $directory: rtiny"* ]]
    [ -e "w/result/${directory}_result.json" ]
  done
  [[ $messages == *"--precision=fp16 --use_static_loss_scaling --loss_scale=128 --data_dir=$PWD/DATA"* ]]
}

@test "a run that fails leaves its log and its exit code, and the others are made" {
  small=(-- --image_size=32 --classes=10 --backend=cpu --threads=1)
  matrix=(--arch=resnet_tiny --batch_size=4 --steps=25) # without --oversubscribe
  expect=78 sweep --cases=2n1g,1n1g --repeats=1
  [[ $messages == *"2n1g/rtiny_b4_fp32_1.log.failed: the run failed: exit code 78; the last line: ddlrun: "* ]]
  [[ $output == *"| 1        | 1 "* ]]
  [[ $output != *"| 2        |"* ]]
  grep -q DDL- w/bz4_fp32_synthetic/2n1g/rtiny_b4_fp32_1.log.failed
}

@test "a run whose log is not whole has failed" {
  small=(-- --image_size=32 --classes=10 --backend=cpu --threads=1 --run_iter=22)
  expect=65 sweep --cases=1n1g --repeats=1
  [[ $messages == *".log.part:"*"the log ends after 2 lines with imgs_per_sec of 5"*"the run failed: its log is not whole"* ]]
}

@test "one of the measurements; the tables come with the last" {
  expect=0 sweep --cases=1n1g,1n2g --repeats=1 --only=2
  [ -z "$output" ]
  [ "$(find w -name '*.log')" = w/bz4_fp32_synthetic/1n2g/rtiny_b4_fp32_1.log ]
  expect=0 sweep --cases=1n1g,1n2g --repeats=1 --only=1
  [[ $output == "## bz4_fp32_synthetic: rtiny"* ]]
}

@test "a signal stops the run and the sweep; the same command measures the rest" {
  matrix=(--arch=resnet_tiny --batch_size=4 --steps=1000000)
  timeout --foreground 120 "$ddlbench" sweep "${matrix[@]}" --cases=1n1g --repeats=2 w "${small[@]}" > out 2> err 3>&- &
  watch=$!
  wait_for 30 grep -q 'step 1/' w/bz4_fp32_synthetic/1n1g/rtiny_b4_fp32_1.log.part
  kill -TERM "$(pgrep -P "$watch" -x ddlbench)"
  expect=143 end_of "$watch" err
  grep -q 'stopped by signal 15; the same command measures the rest' err
  [ "$(grep -c '^ddlbench: + ' err)" -eq 1 ]
  [ -z "$(ranks_here)" ]
}

@test "a dry run prints what would be run, and makes nothing" {
  expect=0 sweep --cases=1n1g,2n2g --repeats=1 --dry_run
  [[ $output == "1 1n1g, fp32, synthetic images, batch 4, repeat 1"*"+ "*"/ddlrun -n 1 --ranks-per-node 1 "*"+ "*"/ddlrun -n 4 --ranks-per-node 2 "*" > $PWD/w/bz4_fp32_synthetic/2n2g/rtiny_b4_fp32_1.log" ]]
  [ ! -e w ]
  sweep --cases=1n1g,2n2g --repeats=1 --dry_run --submit --sbatch=--time=5
  [[ $output == *"+ sbatch --job-name=ddlbench --array=1-2%1 --nodes=2 --gres=gpu:2 --output=$PWD/w/slurm-%A_%a.out --time=5 $PWD/w/sweep.sbatch"*'--only="$SLURM_ARRAY_TASK_ID"'* ]]
  [ ! -e w ]
}

@test "without Slurm there is nothing to submit to" {
  run -69 --separate-stderr env PATH=/nowhere "$ddlbench" sweep --submit w
  [[ $stderr == *"cannot start sbatch: No such file or directory" ]]
}
