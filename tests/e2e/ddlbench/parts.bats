#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The benchmarks of single parts: ddlbench loader, allreduce, copies, step and startup.

load common

# bench COMMAND OPTIONS...: ddlbench by itself: status, $output, $messages.
bench() {
  run_separate timeout 120 "$ddlbench" "$@"
}

# ranks N COMMAND OPTIONS...: the same as N ranks of ddlrun.
ranks() {
  local count=$1
  shift
  run_separate timeout 120 "$DDLRUN_BUILD/bin/ddlrun" -n "$count" --launcher=local --oversubscribe "$ddlbench" "$@"
}

@test "allreduce: two ranks print one table in the form of nccl-tests, whose bandwidths follow from its times" {
  expect=0 ranks 2 allreduce -b 8 -e 1M -f 16 -n 3 -w 1 --backend=cpu
  python3 - << END
import re
lines = """$output""".splitlines()
assert lines[0] == "# ddlbench allreduce: shared memory, 2 ranks", lines[0]
assert "minBytes 8 maxBytes 1048576 step: 16(factor) warmup iters: 1 iters: 3 " in lines[1], lines[1]
assert sum(bool(re.fullmatch(r"#  Rank  [01] Group  0 Pid +[0-9]+ on +\S+ device  0 \[0x00\] CPU", line)) for line in lines) == 2
rows = [line.split() for line in lines if line and not line.startswith("#")]
assert [int(row[0]) for row in rows] == [8, 128, 2048, 32768, 524288], rows
bus = []
for row in rows:
    assert len(row) == 13 and row[1] == str(int(row[0]) // 4) and row[2:5] == ["float", "sum", "-1"], row
    assert row[5:9] == ["N/A"] * 4 and row[12] == "0", row
    seconds = float(row[9]) * 1e-6
    bus.append(float(row[11]))
    assert row[10] == row[11], row  # of two ranks they are the same
    assert abs(float(row[10]) - int(row[0]) / 1e9 / seconds) <= 0.006 + 0.01 * float(row[10]), row
assert "# Out of bounds values : 0 OK" in lines, lines
mean = float(next(line for line in lines if line.startswith("# Avg bus bandwidth")).split()[-1])
assert abs(mean - sum(bus) / len(bus)) < 0.006, (mean, bus)
END
}

@test "allreduce: by MPI, in the form of OSU's benchmark" {
  command -v mpirun > /dev/null || skip "mpirun is not installed"
  expect=0 run_separate timeout 120 "$DDLRUN_BUILD/bin/ddlrun" -n 2 --launcher=mpirun --oversubscribe \
    "$ddlbench" allreduce --form=osu -b 4 -e 64 -f 4 -n 5 --backend=cpu
  [[ $stderr == *"in the form of osu_allreduce -f; ddlbench allreduce: MPI ("*"), 2 ranks"* ]]
  [ "$(grep -c '^# OSU MPI Allreduce Latency Test v' <<< "$output")" -eq 1 ]
  [ "$(grep -cE '^(4|16|64) +[0-9]+\.[0-9]{2} +[0-9]+\.[0-9]{2} +[0-9]+\.[0-9]{2} +5$' <<< "$output")" -eq 3 ]
}

@test "allreduce: a single rank, a back end that there is not" {
  expect=0 bench allreduce -e 64 --backend=reference
  [[ $output == *"one rank, no communication"*"# Out of bounds values : 0 OK"* ]]
  expect=64 bench allreduce --backend=abacus
  [[ $messages == *"abacus"* ]]
  expect=78 bench allreduce --backend=reference --comm=nccl
  [[ $messages == *"--comm=nccl cannot be: rank 0: computes without a GPU"* ]]
}

@test "copies: each rank has a row of all at once and one alone, and of each NUMA node if there are two" {
  expect=0 ranks 2 copies --bytes=1M --rounds=3 --backend=reference
  [[ $output == "# ddlbench copies: 1048576 bytes, the median of 3 copies each way, GB/s; reference"* ]]
  local from wanted=(all bound) nodes=()
  mapfile -t nodes < <(grep -lE '[0-9]' /sys/devices/system/node/node*/cpulist | sed 's/[^0-9]//g' | sort -n)
  [ "${#nodes[@]}" -lt 2 ] || wanted+=("${nodes[@]}")
  [ "$(awk '!/^#/ {print $1, $5}' <<< "$output")" = "$(for from in "${wanted[@]}"; do printf '%s\n' "0 $from" "1 $from"; done)" ]
  awk '!/^#/ && (NF != 7 || $6 <= 0 || $7 <= 0) { bad = 1 } END { exit bad }' <<< "$output"
}

@test "loader: images/s by number of threads, of one rank and of two" {
  "$DDLRUN_BUILD/bin/ddldata" synth --classes 10 --images 64 --validation_images 0 --size 40 DATA > data.out
  expect=0 bench loader --threads=1,2 --batch_size=8 --image_size=32 --steps=4 --warmup_steps=1 --rounds=2 DATA
  [[ $output == "1 rank, each with batches of 8 images of 32 pixels; 2 rounds of 4 steps"* ]]
  python3 - << END
rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in """$output""".splitlines() if line.startswith("|")]
assert rows[0] == ["threads", "images/s", "per thread", "min", "max"], rows
assert [row[0] for row in rows[2:]] == ["1", "2"], rows
for threads, median, each, least, most in rows[2:]:
    assert 0 < float(least) <= float(median) <= float(most), rows
    assert abs(float(each) - float(median) / int(threads)) <= 0.1, rows
END
  expect=0 ranks 2 loader --threads=1 --batch_size=8 --image_size=32 --steps=4 --warmup_steps=1 --rounds=1 DATA
  [ "$(grep -c '^2 ranks, each with ' <<< "$output")" -eq 1 ]
  expect=65 bench loader nowhere
  [[ $messages == *"nowhere"* ]]
}

@test "loader: a device that takes so many images/s gets them, and no more" {
  "$DDLRUN_BUILD/bin/ddldata" synth --classes 10 --images 64 --validation_images 0 --size 40 DATA > data.out
  expect=0 ranks 2 loader --threads=1 --batch_size=8 --image_size=32 --steps=10 --warmup_steps=1 --rounds=1 --take_rate=40 DATA
  [[ $output == "2 ranks, each with batches of 8 images of 32 pixels, taken at 40 images/s; 1 round of 10 steps"* ]]
  python3 - << END
rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in """$output""".splitlines() if line.startswith("|")]
assert rows[0] == ["threads", "images/s", "per thread", "min", "max", "% of rate", "waited, s"], rows
speed, share, waited = (float(rows[2][column]) for column in (1, 5, 6))
assert 0 < speed <= 80.1 and abs(share - speed / 80 * 100) <= 0.2, rows
assert 0 <= waited < 8 * 10 * 2 / speed, rows
END
  expect=64 bench loader --take_rate=-1 DATA
  [[ $messages == *"--take_rate=-1 must be from 0 to 1000000"* ]]
  expect=64 bench loader --take_rate=fast DATA
  [[ $messages == *"--take_rate"* ]]
}

@test "loader: a bad record ends all ranks with its place" {
  "$DDLRUN_BUILD/bin/ddldata" synth --classes 10 --images 64 --shards 1 --validation_images 0 --size 40 DATA > data.out
  rm DATA/ddldata.manifest
  printf 'XXXX' | dd of="$(echo DATA/train-*)" bs=1 seek=200 conv=notrunc status=none
  expect=65 ranks 2 loader --threads=1 --batch_size=32 --image_size=32 --steps=2 --warmup_steps=0 --rounds=1 DATA
  [[ $messages == *"ddlbench: rank "*"DATA/train-"*"offset"* ]]
  expect=0 bench loader --bad_records=skip --threads=1 --batch_size=32 --image_size=32 --steps=2 --warmup_steps=0 --rounds=1 DATA
}

@test "step: the time of a step and of its phases, and nothing is left" {
  expect=0 bench step --devices=2 --steps=5 --warmup_steps=2 --batch_size=4 --arch=resnet_tiny --ddlrun=--oversubscribe "${small[@]}"
  [[ $messages == "ddlbench: + "*"/ddlrun -n 2 --oversubscribe "*"--mode=training_benchmark"* ]]
  python3 - << END
rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in """$output""".splitlines() if line.startswith("|")]
name, median, mean, sd, least, most, steps = rows[2]
assert (name, steps) == ("step", "5") and 0 < float(least) <= float(median) <= float(most), rows
speed = float("""$output""".split("images/s of all ranks: ")[1].split()[0])
assert abs(speed - 8 / (float(median) * 1e-3)) < 0.01 * speed, (speed, median)
assert [row[0] for row in rows[5:]] == ["input wait", "forward", "backward", "exposed all-reduce", "update"], rows
END
  [ -z "$(ls -A tmp)" ]

  small+=(--no_such_option)
  expect=64 bench step --ddlrun=--oversubscribe "${small[@]}"
  [[ $messages == *"unknown option --no_such_option"*"the run failed: exit code 64"* || $messages == *"no_such_option"*"the run failed: exit code 64"* ]]
  [ -z "$output" ]
  [ -z "$(ls -A tmp)" ]
}

@test "startup: bare, ddlrun, and what it adds" {
  expect=0 bench startup --ranks=2 --rounds=3 --ddlrun=--oversubscribe --ddlrun=--launcher=local
  [[ $output == "bare: true, 2 at once (fork); 3 rounds"* ]]
  python3 - << END
rows = {cells[0]: [float(cell) for cell in cells[1:]] for cells in
        ([cell.strip() for cell in line.split("|")[1:-1]] for line in """$output""".splitlines() if line.startswith("| "))
        if cells[0] in ("bare", "ddlrun", "added")}
assert len(rows) == 3 and all(row[3] <= row[0] <= row[4] for row in rows.values()), rows
assert rows["ddlrun"][3] > 0 and rows["bare"][3] > 0, rows
assert abs(rows["added"][1] - (rows["ddlrun"][1] - rows["bare"][1])) < 0.02, rows
END
  if command -v mpirun > /dev/null; then
    expect=0 bench startup --ranks=2 --rounds=1 --ddlrun=--oversubscribe --ddlrun=--launcher=mpirun
    [[ $output == "bare: "*"mpirun "*"--oversubscribe -n 2 true (mpirun); 1 round"* ]]
  fi
  expect=69 bench startup --ddlrun=--no-such-option
  [[ $messages == *"exit code 64 of: "*"ddlrun --no-such-option --dry-run true"* ]]
  [ -z "$(ls -A tmp)" ]
}
