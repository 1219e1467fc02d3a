#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The SC22 study of variability: the files of ddltraind --variability_dir, and what ddlbench variability makes of them.

load common

# study DIR OPTIONS...: a training of two ranks that writes the study's files.
study() {
  local dir=$1
  shift
  run_separate timeout 60 "$DDLRUN_BUILD/bin/ddlrun" -n 2 --oversubscribe "$DDLRUN_BUILD/bin/ddltraind" \
    --mode=training_benchmark --warmup_steps=1 --arch=resnet_tiny --batch_size=4 --image_size=32 --classes=10 \
    --iter_unit=batch --num_iter=6 --backend=cpu --threads=1 --results_dir=results "--variability_dir=$dir" "$@"
}

# variability OPTIONS...
variability() {
  run_separate timeout 60 "$ddlbench" variability "$@"
}

@test "two runs of two ranks: durations, ops and clocks as the study's readers take them, and their statistics" {
  expect=0 study logs
  sleep 1 # the names have seconds
  expect=0 study logs
  [ "$(compgen -G "logs/resnet_iterdur_*.txt" | wc -l)" -eq 2 ]
  [ "$(compgen -G "logs/resnet_*.csv" | wc -l)" -eq 4 ]
  # The rules of the study's readers: explorer.py, extract_data.py.
  python3 - << 'PYTHON'
import glob, re
for path in glob.glob("logs/resnet_*.csv"):
    rows = [[c.strip('"') for c in line.strip().split(",")] for line in open(path) if "==" not in line]
    titles, data = rows[0], rows[2:]
    assert all(len(row) == len(titles) for row in data), path
    kernels = [dict(zip(titles, row)) for row in data if not row[titles.index("System")]]
    assert len(kernels) == 6 * 88, len(kernels)
    assert all(float(k["Start"]) >= 0 and float(k["Duration"]) >= 0 for k in kernels)
    starts = [float(k["Start"]) for k in kernels]
    assert starts == sorted(starts)
    assert len({k["Device"] for k in kernels}) == 1
    int(kernels[0]["Device"].split(" ")[2][1])
    for row in data:
        system = row[titles.index("System")]
        if row[titles.index("Name")] == "[SM/Memory Clock (MHz)]":
            int(system.split("/")[0]), int(system.split("/")[1])
for path in glob.glob("logs/resnet_iterdur_*.txt"):
    seconds = {"0": [], "1": []}
    for line in open(path):
        if "Iteration" in line:
            x = [part for part in line.split("I") if part][0].split(" ")
            seconds[x[3]].append(float(x[5].split("\n")[0]))
        elif "Training time" in line:
            assert re.fullmatch(r"\d+:\d\d:\d\d\.\d{6}", line.split(" ")[2].strip())
            break
    assert [len(s) for s in seconds.values()] == [6, 6]
PYTHON
  expect=0 variability logs --json=variability.json
  [ -z "$messages" ]
  [[ $output == *"2 GPUs of 1 node: median "* ]]
  [[ $output == *"repeats on one GPU: "* ]]
  python3 - << 'PYTHON'
import glob, json, statistics
means = {"0": [], "1": []}
for path in glob.glob("logs/resnet_iterdur_*.txt"):
    for device in means:
        all = [float(l.split()[5]) for l in open(path) if l.startswith("Iteration") and l.split()[3] == device]
        means[device].append(sum(all[1:]) / len(all[1:]))
found = {str(d["device"]): d for d in json.load(open("variability.json"))["devices"]}
for device, of_runs in means.items():
    assert found[device]["runs"] == 2
    assert abs(found[device]["seconds"] / statistics.median(of_runs) - 1) < 1e-9
    assert abs(found[device]["repeat_spread"] - (max(of_runs) - min(of_runs)) / statistics.median(of_runs)) < 1e-9
PYTHON
}

@test "what cannot be used is told by name, 65; the rest is shown" {
  mkdir logs
  printf '\nIteration Duration %d 0 : 0.%d\n' 0 9 1 5 2 6 > logs/resnet_iterdur_1_c1.txt
  printf '\nIteration Duration %d 0 : 0.%d\n' 0 9 1 7 > logs/resnet_iterdur_1_c2.txt
  printf '\nIteration Duration 1 0 : \xff\n' >> logs/resnet_iterdur_1_c2.txt
  : > logs/resnet_iterdur_1_c3.txt
  expect=65 variability logs
  [[ $messages == *"logs/resnet_iterdur_1_c2.txt:6: no duration of an iteration; it is left out"* ]]
  [[ $messages == *"logs/resnet_iterdur_1_c3.txt: no two iterations on one device; it is left out"* ]]
  [[ $output == *"| c1   "*" | 550.000 "* ]]
  [[ $output == *"2 GPUs of 2 nodes: median 625.000 ms"* ]]
  mkdir empty
  expect=65 variability empty
  [ -z "$output" ]
  [[ $messages == *"empty: there is no log such as resnet_iterdur_1649888832_c1.txt"* ]]
  expect=66 variability nowhere
  [[ $messages == *"nowhere: cannot be read: No such file or directory"* ]]
}

@test "the table is shown where the JSON file cannot be written, 71" {
  mkdir logs
  printf '\nIteration Duration %d 0 : 0.%d\n' 0 9 1 5 2 6 > logs/resnet_iterdur_1_c1.txt
  expect=71 variability logs --json=logs/resnet_iterdur_1_c1.txt/x.json
  [[ $messages == "ddlbench: "*"resnet_iterdur_1_c1.txt"* ]]
  [[ $output == *"| c1   "*" | 550.000 "* ]]
}

@test "ddltraind --variability_dir: misuse, 64; a directory that cannot be made, 71" {
  expect=64 study logs --profile
  [[ $stderr == *"--profile and --variability_dir both time each op, of other steps: give one of them"* ]]
  expect=64 study logs --mode=inference_benchmark
  [[ $stderr == *"--variability_dir shows the steps of a training: --mode=inference_benchmark has none"* ]]
  [ ! -e logs ]
  : > file
  expect=71 study file/logs
  [[ $stderr == *"cannot make the directory 'file/logs': file is a file, not a directory; give another --variability_dir"* ]]
}
