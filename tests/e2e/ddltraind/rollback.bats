#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# --on_nan=rollback: from numbers that are none, all ranks go back to a checkpoint and on behind the images that did it.

load common

limit=120 # every fifth step is followed by a checkpoint, which is flushed to the disk

# Images of which one in 200 makes the loss no number: black ones are nothing behind the first convolution, and the
# bright one is multiplied up until it is infinite.
setup_file() {
  export data="$BATS_FILE_TMPDIR/data"
  export weights="$BATS_FILE_TMPDIR/weights.safetensors"
  cd "$BATS_FILE_TMPDIR" || return 1
  python3 "$BATS_TEST_DIRNAME/uniform_images.py" images 10 20 1
  "$DDLRUN_BUILD/bin/ddldata" convert "$data" --train images
  run_small --num_iter=1 --results_dir=first --lr_init=0
  local from=first/checkpoints/step-0000000001/model.safetensors
  fill "$from" conv1.weight 1e10
  fill "$from" layer1.0.conv1.weight 1e13
  fill "$from" layer1.0.conv2.weight 1e13
  cp "$from" "$weights"
}

run_small() {
  env -u DDLRUN_SITE "$DDLRUN_BUILD/bin/ddlrun" -n 1 --launcher=local "$DDLRUN_BUILD/bin/ddltraind" --arch=resnet_tiny \
    --data_dir="$data" --classes=10 --image_size=32 --batch_size=8 --iter_unit=batch --threads=1 --mode=train \
    --freeze_batch_norm "$@"
}

# fill FILE NAME VALUE: in place.
fill() {
  python3 "$BATS_TEST_DIRNAME/safetensors.py" filled "$1" filled "$2" "$3"
  mv filled "$1"
}

# What all runs here have.
rolling=(--mode=train --freeze_batch_norm --on_nan=rollback --checkpoint_every=5)

# number KEY MANIFEST
number() {
  sed -n "s/^  \"$1\": \([0-9]*\),\$/\1/p" "$2"
}

@test "two ranks go back to the newest checkpoint, and on behind the images of the step" {
  launcher=local expect=0 train 2 --num_iter=60 --results_dir=run --init_from="$weights" --display_every=1 "${rolling[@]}"
  grep -o ' iteration: [0-9]*' <<< "$output" > iterations
  sort -t : -k 2 -n -u iterations | diff iterations -
  local step line rollbacks skipped=0
  # Each line fits to itself, and together they are what the last checkpoint says.
  while read -r line; do
    [[ $line =~ "step "([0-9]+)": the loss is nan (learning rate "[^\)]*"): rolled back to step "([0-9]+)" (--on_nan=rollback, " ]]
    step=${BASH_REMATCH[1]}
    [ "${BASH_REMATCH[2]}" -eq $((step / 5 * 5)) ]
    [[ $line =~ "the "([0-9]+)" images from there to the end of step $step are skipped" ]]
    [ "${BASH_REMATCH[1]}" -eq $((16 * (step % 5 + 1))) ]
    skipped=$((skipped + BASH_REMATCH[1]))
  done < <(grep 'rolled back to step' <<< "$messages")
  rollbacks=$(grep -c "): rolled back to step" <<< "$messages")
  [ "$rollbacks" -ge 3 ]
  local manifest=run/checkpoints/step-0000000060/manifest.json
  [ "$(number skipped_images "$manifest")" -eq "$skipped" ]
  [ $(($(number epoch "$manifest") * 200 + $(number epoch_samples "$manifest"))) -eq $((60 * 16 + skipped)) ]
}

@test "killed after a rollback, it comes to the same bytes" {
  launcher=local expect=0 train 2 --num_iter=400 --results_dir=whole --init_from="$weights" "${rolling[@]}"
  launcher=local start_training 2 --num_iter=400 --results_dir=run --init_from="$weights" "${rolling[@]}"
  wait_for 60 grep -q "rolled back to step [1-9]" err
  kill -KILL "$(ranks_here 0)"
  expect=137 end_of_training
  [ ! -e run/checkpoints/step-0000000400 ]
  launcher=local expect=0 train 2 --num_iter=400 --results_dir=run --init_from="$weights" "${rolling[@]}"
  [[ $messages == *"rolled back to step "* ]]
  diff -r whole/checkpoints run/checkpoints
}

@test "after three rollbacks to a checkpoint the run ends with 70 on all ranks" {
  cp "$weights" infinite.safetensors
  fill infinite.safetensors layer1.0.bn1.bias 3e38
  launcher=local expect=70 train 2 --num_iter=60 --results_dir=run --init_from=infinite.safetensors "${rolling[@]}"
  [ "$(grep -v '^ddlrun: ' <<< "$messages" | grep -c 'rolled back to step 0 ')" -eq 3 ]
  [[ $messages == *"ddltraind: rank 0 on "*"step 0: the "*", after 3 rollbacks to the checkpoint of step 0 from which none newer came: training has diverged; start again "* ]]
  [ "$(ls run/checkpoints)" = step-0000000000 ]
}

@test "refused where there is no checkpoint to go back to, with what to type" {
  expect=64 train 1 --num_iter=5 --results_dir=run --mode=train --on_nan=rollback --checkpoint_every=0
  [[ $messages == *"--on_nan=rollback needs a newest checkpoint, but --checkpoint_every=0 takes none: give so many steps, or --on_nan=stop or skip"* ]]
}
