#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A training that goes on with other ranks, another batch and another back end takes the images that are left.

load common

# As many classes as images, in files of 28 and 29: the gradient of the head's bias tells the images apart.
setup_file() {
  export data="$BATS_FILE_TMPDIR/data"
  "$DDLRUN_BUILD/bin/ddldata" synth --classes 200 --images 200 --shards 7 --validation_images 0 --size 32-40 "$data"
}

# A run whose momentum is the plain sum of gradients, and whose head stays all zeros: every image is of every class
# with a probability of 1/200, so that what is left in the sum is how often each was seen (seen_images.py).
counting() {
  small=(--arch=resnet_tiny --data_dir="$data" --classes=200 --image_size=32 --lr_warmup_epochs=0 --threads=1
    --lr_init=0 --momentum=1 --weight_decay=0 --mode=train)
  expect=0 train 1 --batch_size=8 --run_iter=0 --results_dir=first --backend=reference
  python3 "$safetensors" zeroed first/checkpoints/step-0000000000/model.safetensors zero fc.weight fc.bias
  small+=(--init_from=zero --results_dir=run --iter_unit=batch --num_iter=18)
}

# launch RANKS BATCH STEPS BACK_END: a part of the run.
launch() {
  expect=0 train "$1" --batch_size="$2" --run_iter="$3" --backend="$4"
}

# said TEXT: once, as a whole line but for its time and level.
said() {
  [ "$(grep -c -F -- "$1" <<< "$messages")" -eq 1 ]
}

# seen CHECKPOINT...: "120x0 80x1" where 120 images were not seen until the last of these and 80 were seen once.
seen() {
  python3 "$BATS_TEST_DIRNAME/seen_images.py" "$safetensors" "$@" > counts
  sort counts | uniq -c | awk '{print $1 "x" $2}' | xargs
}

@test "2 ranks, then 3, then 1, of other batches and back ends: each image once in an epoch, and what changed is said" {
  counting
  local checkpoints=run/checkpoints
  launch 2 8 5 reference
  [[ $messages != *"resumed from"* ]]
  [ "$(seen $checkpoints/step-0000000005)" = "120x0 80x1" ]

  launch 3 5 4 cpu
  said "resumed from step 5, after 80 of the 200 images of epoch 1: run/checkpoints/step-0000000005"
  said "changed since step 5: ranks 2 (now 3); all continue with the mean of the running statistics of batch norm"
  said "changed since step 5: images in a step 16 (now 15); the learning rate is that of the new number, at the same place of the epoch"
  said "changed since step 5: --batch_size 8 (now 5)"
  said "changed since step 5: --backend reference (now cpu); it computes the same but for rounding"
  [ "$(grep -c "changed since" <<< "$messages")" -eq 4 ]
  [ "$(seen $checkpoints/step-000000000[59])" = "60x0 140x1" ]

  launch 1 12 5 reference
  said "resumed from step 9, after 140 of the 200 images of epoch 1: run/checkpoints/step-0000000009"
  said "changed since step 9: ranks 3 (now 1);"
  said "changed since step 9: images in a step 15 (now 12);"
  [ "$(seen $checkpoints/step-000000000[59] $checkpoints/step-0000000014)" = "200x1" ]

  # The same again: nothing has changed.  Then a whole epoch in other steps.
  launch 1 12 0 reference
  said "resumed from step 14, after 0 of the 200 images of epoch 2: "
  [[ $messages != *"changed since"* ]]
  launch 2 25 4 cpu
  [ "$(seen $checkpoints/step-000000000[59] $checkpoints/step-000000001[48])" = "200x2" ]
}

@test "fewer and fewer ranks with --global_batch_size, which not all of them divide: each image once, and the steps are the same" {
  counting
  local checkpoints=run/checkpoints
  small+=(--global_batch_size=20)
  launch 4 5 3 reference
  said "--global_batch_size=20: 4 ranks x 5"
  launch 3 5 4 cpu
  said "--global_batch_size=20: 5 batches of 4 over 3 ranks; 2 compute 2 in a step, the others 1"
  said "resumed from step 3, after 60 of the 200 images of epoch 1: run/checkpoints/step-0000000003"
  launch 2 5 3 reference
  said "--global_batch_size=20: 2 ranks x 2 batches x 5"
  [[ $messages != *"images in a step"* ]]
  [ "$(seen $checkpoints/step-000000000[37])" = "60x0 140x1" ]
  [ "$(seen $checkpoints/step-000000000[37] $checkpoints/step-0000000010)" = "200x1" ]

  # A prime number.
  small=("${small[@]/--global_batch_size=20/--global_batch_size=37}")
  expect=78 train 2 --batch_size=16
  [[ $messages == *"--global_batch_size=37: 2 ranks cannot compute so many images in batches of equal size up to --batch_size=16, but for very small ones: give 36 or 38, or start another number of ranks"* ]]
}

@test "epochs end where the new batch lets them, a run that has ended stays so, and a shorter one is refused" {
  counting
  small+=(--export_dir=final)
  small=("${small[@]/--iter_unit=batch/--iter_unit=epoch}")
  small=("${small[@]/--num_iter=18/--num_iter=2}")
  launch 2 10 1 reference
  [ "$(ls run/checkpoints)" = step-0000000010 ]
  rm final/model.safetensors # as of one epoch
  # 13 steps of 15 in an epoch, 26 in two: 390 images, of which 200 are done.
  launch 3 5 -1 reference
  said "changed since step 10: images in a step 20 (now 15);"
  [ -e run/checkpoints/step-0000000022 ]
  [ -e final/model.safetensors ]
  launch 1 16 -1 reference
  [ ! -e run/checkpoints/step-0000000023 ]
  small=("${small[@]/--num_iter=2/--num_iter=1}")
  expect=78 train 1 --batch_size=16 --backend=reference
  [[ $messages == *"run/checkpoints/step-0000000022 is after the end of this run, which is step "*": give a larger --num_iter"* ]]
}
