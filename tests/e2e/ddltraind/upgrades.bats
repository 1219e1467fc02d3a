#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Runs, data and files of ddlrun 0.1.0 and 0.2.0 (tests/fixtures) with the programs of today, and what later programs would leave
# (doc/formats.md).

load common

kept=$BATS_FILE_TMPDIR/kept

setup_file() {
  mkdir "$kept"
  tar -xzf "$BATS_TEST_DIRNAME/../../fixtures/0.1.0/files.tar.gz" -C "$kept"
  mkdir "$kept/0.2.0"
  tar -xzf "$BATS_TEST_DIRNAME/../../fixtures/0.2.0/files.tar.gz" -C "$kept/0.2.0"
}

# The training that made the run, in a copy of it: resume STEPS OPTIONS...
resume() {
  local steps=$1
  shift
  small=(--arch=resnet_tiny --backend=reference --data_dir=data --classes=3 --image_size=32 --batch_size=2 --iter_unit=batch
    --lr_warmup_epochs=0 --threads=1)
  train 1 --mode=train --results_dir=run --num_iter="$steps" "$@"
}

ctl() { timeout 60 "$DDLRUN_BUILD/bin/ddlctl" "$@"; }

copy() {
  cp -r "$kept/run" "$kept/data" .
  chmod -R u+w run data
}

# A checkpoint of a later ddltraind in the run; its manifest is whole.
add_newer_checkpoint() {
  mkdir run/checkpoints/step-0000002000
  python3 - run/checkpoints/step-0000002000/manifest.json << 'PYTHON'
import json
import sys

def crc32c(data):
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF

body = {"format": 9, "parts": [], "program_version": "9.8.7"}
text = json.dumps(body, separators=(",", ":"), sort_keys=True)
with open(sys.argv[1], "w", encoding="utf-8") as file:
    json.dump({"crc32c": f"{crc32c(text.encode()):08x}", "manifest": body}, file)
PYTHON
}

@test "a run of 0.1.0 goes on, with its data set and index" {
  copy
  cp -r "$kept/index" .
  resume 1112 --data_idx_dir=index
  expect_status 0 "$output $messages"
  [[ $messages == *"step 1109"* ]]
  [ -s run/checkpoints/step-0000001112/manifest.json ]
}

@test "a run of 0.2.0 with averages is listed, exported and evaluated, and goes on, with the results of 0.2.0" {
  cp -r "$kept"/0.2.0/{run,data} .
  chmod -R u+w run data
  run ctl checkpoint list run
  expect_status 0
  [ "$(awk 'NR > 1 { print $1, $(NF - 1), $NF }' <<< "$output")" = "$(printf '%s\n' '7 0.2.0 whole' '6 0.2.0 whole')" ]
  run -0 ctl checkpoint verify run
  ctl checkpoint export run weights.safetensors
  cmp weights.safetensors "$kept/0.2.0/weights.safetensors"
  resume 9 --mode=evaluate
  [[ $messages == *"evaluation of 2 images: top-1 50.000 %, top-5 100.000 %, loss 0.9387,"* ]]
  resume 9 --mode=evaluate --init_from=weights.safetensors
  [[ $messages == *"evaluation of 2 images: top-1 50.000 %, top-5 100.000 %, loss 0.9387,"* ]]
  resume 9 --mode=train_and_evaluate --eval_every=3 --checkpoint_every=5 --ema=0.9
  expect_status 0 "$output $messages"
  [[ $messages == *"resumed from step 7, after 2 of the 6 images of epoch 3"*"top-1 50.000 %, top-5 100.000 %, loss 1.3922,"* ]]
  grep -q '"format": 3' run/checkpoints/step-0000000009/manifest.json
}

@test "ddlctl lists, verifies and exports a checkpoint of 0.1.0" {
  copy
  run ctl checkpoint list run
  expect_status 0
  [ "$(awk 'NR > 1 { print $1, $(NF - 1), $NF }' <<< "$output")" = "1109 0.1.0 whole" ]
  run -0 ctl checkpoint verify run
  ctl checkpoint export run weights.safetensors
  cmp weights.safetensors "$kept/weights.safetensors"
}

@test "a checkpoint of a later version is named, and not passed over" {
  local newer=run/checkpoints/step-0000002000 why
  copy
  add_newer_checkpoint
  why="$newer/manifest.json: a checkpoint of ddltraind 9.8.7, of format 9, and this program reads format 3: use the version of ddlrun that has written it, or a newer one"
  resume 2003
  expect_status 78 "$messages"
  [[ $messages == *"$why; or, to resume from the checkpoint before it, move $newer away"* ]]
  [ -d run/checkpoints/step-0000001109 ]
  run ctl checkpoint list run
  expect_status 0
  [[ ${lines[1]} == 2000*"$why" ]]
  [[ ${lines[2]} == 1109*whole ]]
  run -78 --separate-stderr ctl checkpoint verify run
  [[ $output == "step 1109: all checksums hold: "* ]]
  [ "$stderr" = "ddlctl: step 2000: $why" ]
  run -78 --separate-stderr ctl checkpoint export run weights.safetensors
  [ ! -e weights.safetensors ]
  mv "$newer" .
  resume 1112
  [ "$status" -eq 0 ]
}

@test "data of 0.1.0 are verified, a split of it goes on, a later manifest is refused" {
  copy
  "$DDLRUN_BUILD/bin/ddldata" verify data
  "$DDLRUN_BUILD/bin/ddldata" split --shards 3 data whole
  mkdir split
  cp "$kept/split/ddldata.conversion" split
  "$DDLRUN_BUILD/bin/ddldata" split --shards 3 data split
  diff -r whole split
  sed -i '1s/1/9/' data/ddldata.manifest
  expect=65 run_separate "$DDLRUN_BUILD/bin/ddldata" verify data
  [[ $output$stderr == *"data/ddldata.manifest:1: a data manifest of format 9, and this program reads format 1: use the version of ddlrun that has written it, or a newer one; or, if you trust the files, make one that this version reads: ddldata manifest data"* ]]
  resume 1112
  [ "$status" -eq 65 ]
  [[ $messages == *"a data manifest of format 9, and this program reads format 1"* ]]
}

@test "plans of a later version are left as they are" {
  copy
  echo "ddltraind plans 9" > plans
  resume 1110 --plan_cache=plans
  expect_status 0 "$messages"
  [[ $messages == *"cannot read plans (--plan_cache): plans of format 9, and this program reads format 1"* ]]
  [ "$(cat plans)" = "ddltraind plans 9" ]
}

@test "ddlctl reads what a training and a ddlrun of 0.1.0 have left, and names later ones" {
  mkdir ended job
  cp "$kept/control/ended_address" ended/.ddltraind.control
  cp "$kept/control/job_status" job/status
  run ctl status ended
  expect_status 0
  [[ $output == *"step 1109/100000"*"ddltraind 0.1.0"* ]]
  run ctl status job
  expect_status 0
  [[ $output == *"resnet_tiny"*"1 on 1 node: 1 running"* ]]
  sed -i 's/"protocol":1/"protocol":9/' ended/.ddltraind.control
  run -65 --separate-stderr ctl status ended
  [ "$stderr" = "ddlctl: ended/.ddltraind.control: the address of a training of format 9, and this program reads format 1: use the version of ddlrun that has written it, or a newer one" ]
}

@test "ddlrun takes a site file of 0.1.0" {
  run "$ddlrun" --site "$kept/site.yaml" --show-config
  expect_status 0
  grep -qE '^start_seconds: 300 +# ' <<< "$output"
}

@test "every program says its version first, then what it was built with" {
  for name in ddlrun ddltraind ddlctl ddldata ddlbench; do
    program=$DDLRUN_BUILD/bin/$name
    run "$program" --version
    expect_status 0
    [[ ${lines[0]} =~ ^("$name "|"")[0-9]+\.[0-9]+\.[0-9]+$ ]]
    [ "$(grep -c '^built with: ' <<< "$output")" -eq 1 ]
    "$program" --help | tr -s '\n ' ' ' | grep -qE -- '--version .*libraries'
  done
}
