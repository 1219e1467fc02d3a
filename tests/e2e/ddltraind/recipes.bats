#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# LARS, its schedule, and the recipes that set both.

load common

lars=(--optimizer=lars --lr_schedule=polynomial --lr_scaling=none --lr_init=2)

@test "a recipe says every value with its source, and what is given wins" {
  small=(--arch=resnet_tiny --image_size=32 --threads=1) # and images that are made up, as many as ImageNet has
  expect=0 train 2 --recipe=mlperf --batch_size=64 --accumulate=64 --momentum=0.8 --dry_run
  [[ $messages == *"recipe mlperf for 8192 images in a step: "*"rcps_resnet.json), the row of 8192: 42 epochs to 75.9 %"* ]]
  [[ $messages == *"recipe mlperf: --lr_init=17 (the row of 8192)"* ]]
  [[ $messages == *"recipe mlperf: --momentum=0.9, but --momentum is given"* ]]
  [ "$(grep -c "recipe mlperf: --" <<< "$messages")" -eq 14 ] # of rank 0 alone
  [[ $output == *"6864 in 44 epochs of 156"* ]]
  [[ $output == *"17 after 780 steps of warm-up, polynomial decay to 0.0001 in 6084 steps"* ]]
  [[ $output == *"optimizer         LARS"* ]]
}

@test "a recipe for other sizes than were published, 64" {
  for ranks in 1 2; do
    launcher=local expect=64 train $ranks --num_iter=2 --recipe=mlperf --results_dir=run
    [[ $messages == *"--recipe=mlperf is published for 1632 to 67840 images in a step, not $((8 * ranks)) ($ranks rank"* ]]
  done
  [ ! -e run ]
}

@test "LARS of two ranks goes on to the same bits, and its momentum is no other's, 78" {
  expect=0 train 2 --num_iter=12 --results_dir=whole --mode=train --paranoid=1 "${lars[@]}"
  expect=0 train 2 --num_iter=12 --run_iter=5 --results_dir=run --mode=train "${lars[@]}"
  expect=78 train 2 --num_iter=12 --results_dir=run --mode=train
  [[ $messages == *"step-0000000005 is of a training with --optimizer=lars, whose momentum means nothing to --optimizer=sgd"* ]]
  expect=0 train 2 --num_iter=12 --results_dir=run --mode=train "${lars[@]}"
  for file in whole/checkpoints/step-0000000012/*.safetensors; do
    cmp "$file" "run/checkpoints/step-0000000012/${file##*/}"
  done
}

@test "MLLOG of LARS has the hyper-parameters that MLPerf's rules name" {
  expect=0 train 1 --num_iter=30 --results_dir=run --mllog=mlperf.txt "${lars[@]}"
  python3 "$BATS_TEST_DIRNAME/read_logs.py" mllog mlperf.txt
  for value in '"opt_name", "value": "lars"' '"lars_epsilon", "value": 0.0' '"lars_opt_base_learning_rate", "value": 2.0' \
    '"lars_opt_end_learning_rate", "value": 0.0001' '"lars_opt_learning_rate_decay_poly_power", "value": 2' \
    '"lars_opt_learning_rate_decay_steps", "value": 30' '"lars_opt_learning_rate_warmup_epochs", "value": 0' \
    '"lars_opt_momentum", "value": 0.9' '"lars_opt_weight_decay", "value": 0.0001'; do
    [ "$(grep -c "\"key\": $value," mlperf.txt)" -eq 1 ] || {
      echo "$value"
      return 1
    }
  done
  run ! grep sgd mlperf.txt
  expect=0 train 1 --num_iter=30 --results_dir=closed --mllog=closed.txt --mllog_division=closed "${lars[@]}" --weight_decay=0.0002
  python3 "$BATS_TEST_DIRNAME/read_logs.py" mllog closed.txt closed
  run ! python3 "$BATS_TEST_DIRNAME/read_logs.py" mllog mlperf.txt closed
  expect=64 train 1 --num_iter=30 --results_dir=other --mllog=other.txt --mllog_division=closed "${lars[@]}" --weight_decay=0.0003
  [[ $messages == *"--mllog_division=closed: MLPerf's rules want --lr_schedule=polynomial --lr_end=0.0001 and a --weight_decay of"* ]]
}
