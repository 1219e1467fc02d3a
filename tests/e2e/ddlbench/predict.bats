#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# ddlbench predict, by itself and from the logs of a sweep.

load common

# predict OPTIONS...
predict() {
  run_separate timeout 20 "$ddlbench" predict "$@"
}

# said EXPRESSION: of the JSON object in $output, whose first prediction is p.
said() {
  python3 -c 'import json, sys; o = json.loads(sys.argv[1]); p = o["predictions"][0]; print(eval(sys.argv[2]))' "$output" "$1"
}

# sweep_of FOLDER: logs of one GPU, of nodes of 4, and of 4 nodes.
sweep_of() {
  log "$1/1n1g/r50_b256_fp16_1.log" 100 1125.0 1
  log "$1/1n4g/r50_b256_fp16_1.log" 100 4400.0 4
  log "$1/2n4g/r50_b256_fp16_1.log" 100 8600.0 8
  log "$1/4n4g/r50_b256_fp16_1.log" 100 17000.0 16
}

@test "a table of nodes, from one to 4096" {
  expect=0 predict --speed=1125 --nodes=1,4096
  [ -z "$messages" ]
  [[ $output == *'one GPU   1125 images/s, 256 images in a step: given by --speed'* ]]
  [[ $output == *'| 1     | 4     | 4'[45]??' '* ]]
  [[ $output == *'| 4096  | 16384 |'* ]]
  predict --speed=1125 --ranks=1,2,6 --json
  [ "$(said '[(x["nodes"], x["ranks"]) for x in o["predictions"]]')" = '[(1, 1), (1, 2), (2, 6)]' ]
  [ "$(said 'p["images_per_s"]')" = 1125.0 ]
  predict --speed=1125 --nodes=4096
  [[ $output == *'Faster on 16384 GPUs would be:'*'a GPU twice as fast'* ]]
}

@test "links of an installed site file, a speed that is known, and options before the file" {
  expect=0 predict --site=bede --json --nodes=8
  [ "$(said 'o["links"]')" = '4 GPUs per node, xbus (32 GB/s) inside, 2 adapters of 100 Gbit/s' ]
  [ "$(said 'o["input"]')" = '10 GB/s of files of 110 kB' ]
  [ "$(said 'round(o["one_gpu"]["images_per_s"])')" -eq 1270 ]
  [ "$(said 'p["ranks"]')" -eq 32 ]
  predict --site=bede --gpu=A100 --gpus_per_node=8 --adapters=8 --json
  [ "$(said 'o["links"]')" = '8 GPUs per node, xbus (32 GB/s) inside, 8 adapters of 100 Gbit/s' ]
  [ "$(said 'round(o["one_gpu"]["images_per_s"])')" -eq 2470 ]
  expect=78 predict --site=./nowhere.yaml
  [ "$messages" = 'ddlbench: site file ./nowhere.yaml cannot be read' ]
}

@test "nodes of another kind in the same job" {
  printf 'machine: {gpu: V100, gpus_per_node: 2, adapters: 1}\n' > old.yaml
  printf 'machine: {gpu: K80, gpus_per_node: 2}\n' > older.yaml
  expect=0 predict --gpu=A100 --gpus_per_node=8 --adapters=8 --other_nodes=3 --other_site=./old.yaml --nodes=1,2
  [ -z "$messages" ]
  [[ $output == *'others    3 nodes: one GPU 1270 images/s, published for '*'; 2 GPUs per node, nvlink2 (120 GB/s) inside (assumed), 1 adapter of 100 Gbit/s (assumed); the quicker GPUs wait 97.9 ms for the others in each step'* ]]
  [[ $output == *'| 4     | 14    |'*'| ranks        |'*'| 5     | 22    |'*'Faster on 22 GPUs would be:'*'without the nodes of the other kind'* ]]
  predict --gpu=A100 --gpus_per_node=8 --other_nodes=3 --other_site=./old.yaml --other_speed=2470 --nodes=1 --json
  [ "$(said 'p["kinds_wait_s"]')" = 0.0 ]
  [[ "$(said 'o["others"]')" == '3 nodes: one GPU 2470 images/s, given by --other_speed; '* ]]
  expect=64 predict --gpu=A100 --other_nodes=3 --other_site=./older.yaml
  [ "$messages" = 'ddlbench: how fast is one GPU of ./older.yaml? Give --other_speed=IMAGES_PER_S, or a site whose gpu: is V100, A100, H100 or H200' ]
  expect=64 predict --gpu=A100 --other_nodes=3
  [ "$messages" = 'ddlbench: --other_nodes: which? Give --other_site=FILE|NAME' ]
  expect=64 predict --gpu=A100 --other_site=bede
  [ "$messages" = 'ddlbench: --other_site: how many nodes of this kind? Give --other_nodes=N' ]
  expect=64 predict --gpu=A100 --other_speed=100
  [ "$messages" = 'ddlbench: --other_speed: how many nodes of this kind? Give --other_nodes=N' ]
  expect=64 predict --gpu=A100 --other_site=bede --other_nodes=5000
  [ "$messages" = 'ddlbench: --other_nodes=5000 must be from 0 to 4096' ]
}

@test "from a sweep of one GPU, one node and two, with what else it has beside" {
  sweep_of w
  expect=0 predict --from=w --nodes=1,2,4 --json
  [ "$(said 'o["one_gpu"]["source"]')" = 'measured in w' ]
  # What was told comes out again; four nodes are predicted.
  [ "$(said '[round(x["images_per_s"]) for x in o["predictions"]][:2]')" = '[4400, 8600]' ]
  [ "$(said 'abs(o["predictions"][2]["images_per_s"] / o["predictions"][2]["measured_images_per_s"] - 1) < 0.05')" = True ]
  predict --from=w --nodes=4
  [[ $output == *'bound by     | measured |'*'| 17000    |'* ]]
}

@test "a sweep that does not say what is needed" {
  mkdir empty
  expect=65 predict --from=empty
  [[ $messages == 'ddlbench: empty: no directory of logs such as 1n1g in it' ]]
  log w/1n4g/r50_b256_fp16_1.log 100 4400.0 4
  expect=65 predict --from=w
  [[ $messages == *'ddlbench: w: no log of 1n1g, one GPU, which all else is compared with' ]]
  sweep_of both/a
  sweep_of both/b
  expect=64 predict --from=both
  [[ $messages == *'--from: both has 2 directories of logs: name one, such as both/'* ]]
}

@test "a table of all_reduce_perf counts between nodes" {
  printf '# size count type redop root time algbw busbw #wrong\n%s\n' '1048576 262144 float sum -1 1835 0.57 1.00 0' '134217728 33554432 float sum -1 235000 0.57 1.00 0' > slow.txt
  expect=0 predict --speed=1125 --table=slow.txt --nodes=8 --json
  # 198 MB at about 1 GB/s.
  [ "$(said '0.19 < p["sums_s"] < 0.21')" = True ]
  [[ $(said 'o["links"]') == *'sums between nodes as in slow.txt' ]]
  echo 'no table' > slow.txt
  expect=65 predict --speed=1125 --table=slow.txt
  [[ $messages == 'ddlbench: slow.txt:1: no line of all_reduce_perf: '* ]]
  expect=66 predict --speed=1125 --table=nowhere.txt
  [ "$messages" = 'ddlbench: --table: nowhere.txt cannot be read' ]
}

@test "a measured profile says when gradients are there" {
  timeout 120 "$DDLRUN_BUILD/bin/ddltraind" --arch=resnet50 --backend=cpu --batch_size=1 --image_size=64 --classes=10 --num_iter=3 \
    --iter_unit=batch --threads=1 --mode=train --results_dir=run --profile=2:2 --roofline=100:10 > train.log 2>&1
  expect=0 predict --speed=1125 --profile=run/profile.json --json
  [ "$(said 'o["backward"]["source"]')" = 'measured in run/profile.json' ]
  # Of times that were measured on a machine that does other things as well.
  local share
  share=$(python3 -c 'import json; ops = json.load(open("run/profile.json"))["ops"]
backward = [o["seconds"] for o in ops if "backward" in o["op"]]
print(sum(backward) / sum(o["seconds"] for o in ops) if len(backward) > 100 else "too few")')
  [ "$(said "abs(o['backward']['share'] - $share) < 1e-6")" = True ]
  expect=64 predict --speed=1125 --profile=run/profile.json --backward_share=0.5
  [[ $messages == *'--backward_share does not go with --profile'* ]]
  expect=65 predict --speed=1125 --profile=run/training.json
  [[ $messages == 'ddlbench: run/training.json: no profile of ddltraind; profile.json is written by ddltraind --profile --results_dir=DIR' ]]
  expect=66 predict --speed=1125 --profile=nowhere.json
  [ "$messages" = 'ddlbench: --profile: nowhere.json cannot be read' ]
}

@test "software that waits is named, with the reason" {
  predict --speed=1116 --node_speed=6867 --gpus_per_node=8 --json --nodes=2
  [ "$(said 'o["waits"]')" = True ]
  [[ $(said 'o["reason"]') == *'ranks wait for their hosts'* ]]
  predict --speed=1116 --node_speed=6867 --gpus_per_node=8 --overlap=yes --json --nodes=2
  [ "$(said 'o["waits"]')" = False ]
}

# gain OPTIONS...: how many times as fast 32 GPUs of Bede are as 16.
gain() {
  predict --site=bede --speed=1125 --nodes=4,8 --json "$@"
  said 'round(o["predictions"][1]["images_per_s"] / p["images_per_s"], 2)'
}

@test "of the reasons for Bede's 32 GPUs, one leaves 16 as they were and 32 no faster (doc/scaling.md)" {
  [ "$(gain)" = 2.0 ]
  [ "$(gain --adapters=1)" = 2.0 ]
  [ "$(gain --overlap=no --cycle_ms=5)" = 2.0 ]
  [ "$(gain --overlap=no --staging_gbs=4)" = 1.99 ]
  [ "$(gain --overlap=no --adapters=1 --adapter_gbits=8)" = 1.96 ]
  [ "$(gain --file_system_gbs=2)" = 1.01 ]
  predict --site=bede --speed=1125 --nodes=4,8 --json --file_system_gbs=2
  [ "$(said 'round(p["images_per_s"], -3)')" = 18000.0 ]
  [ "$(said '[x["bound_by"] for x in o["predictions"]]')" = "['compute', 'input']" ]
}
