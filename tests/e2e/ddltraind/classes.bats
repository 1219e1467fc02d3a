#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What a label stands for, and which images a top-1 is of, goes with the weights: data with other classes are refused in every mode.

load common

# Three classes; in backwards they have the labels 3, 2, 1, with the same images in files of the same sizes.
setup_file() {
  local made="$BATS_FILE_TMPDIR"
  export images="$made/images" onwards="$made/onwards" backwards="$made/backwards" few="$made/few"
  ddldata="$DDLRUN_BUILD/bin/ddldata"
  "$ddldata" synth --classes 3 --images 48 --validation_images 9 --size 36-48 "$made/made"
  python3 "$BATS_TEST_DIRNAME/../ddldata/images.py" "$made/made" "$images"
  (cd "$images/train" && mv n00000001 cat && mv n00000002 dog && mv n00000003 eel)
  printf 'cat\ndog\neel\n' > "$made/onwards.txt"
  printf 'eel\ndog\ncat\n' > "$made/backwards.txt"
  for order in onwards backwards; do
    "$ddldata" convert "$made/$order" --shards 1 --train "$images/train" --validation "$images/train" --class_list "$made/$order.txt"
  done
  mkdir "$made/of_few"
  cp -r "$images/train/cat" "$made/of_few"
  cp -r "$onwards" "$few"
  rm "$few"/validation-* "$few"/ddldata.*
  "$ddldata" convert "$made/few_images" --validation "$made/of_few" --class_list "$onwards/labels.txt"
  cp "$made"/few_images/validation-* "$few"
  "$ddldata" manifest "$few"
}

setup() {
  enter_test_directory
  ddlrun="$DDLRUN_BUILD/bin/ddlrun"
  ddltraind="$DDLRUN_BUILD/bin/ddltraind"
  small=(--arch=resnet_tiny --classes=3 --image_size=32 --batch_size=8 --iter_unit=batch --lr_warmup_epochs=0 --threads=1)
  because=': the labels do not stand for the classes of these weights; '
  instead='or give --ignore_mismatched_classes to use them all the same'
}

# run_mode MODE OPTIONS...
run_mode() {
  train 1 --mode="$@"
}

# refuses TEXT MODE OPTIONS...: with 65, by default and not with the option.
refuses() {
  local text=$1
  shift
  expect=65 run_mode "$@"
  [[ $messages == *"$text$because"*"$instead"* ]] || {
    echo "not in: $messages"
    return 1
  }
  expect=0 run_mode "$@" --ignore_mismatched_classes
  [[ $messages == *"$text: it is used all the same (--ignore_mismatched_classes)"* ]]
}

trained() {
  expect=0 run_mode train_and_evaluate --data_dir="$onwards" --num_iter="$1" --results_dir=run "${@:2}"
}

@test "evaluation, prediction and a resume with other classes are refused, naming the first" {
  local step=run/checkpoints/step-0000000006 differs
  trained 6 --export_dir=out
  differs="label 1 is \"eel\" in $backwards/labels.txt, and \"cat\" in "
  refuses "$differs$step" evaluate --data_dir="$backwards" --model_dir=run
  [[ $messages == *"evaluation of 48 images"* ]]
  refuses "$differs$step" predict --data_dir="$backwards" --model_dir=run --to_predict="$images/train/cat/n00000001_0.JPEG"
  cp -r run again
  expect=65 run_mode train_and_evaluate --data_dir="$backwards" --results_dir=again --num_iter=7
  [[ $messages == *"${differs}again/checkpoints/step-0000000006$because"* ]]
  [[ $messages != *"--new_head"* ]]
  [ ! -e again/checkpoints/step-0000000007 ]
  # Weights that were written for others have them as well, and the network's own file of a checkpoint.
  for weights in out/model.safetensors run/checkpoints/step-0000000006/model.safetensors; do
    refuses "$differs$weights" evaluate --data_dir="$backwards" --init_from="$weights"
    expect=65 run_mode train --data_dir="$backwards" --init_from="$weights" --results_dir=new --num_iter=2
    [[ $messages == *"$differs$weights$because"*"give --new_head to train a last layer for them, $instead"* ]]
  done
  expect=65 run_mode train --data_dir="$backwards" --init_from=run --results_dir=new --num_iter=2
  [[ $messages == *"${differs}run/checkpoints/step-0000000006/model.safetensors$because"* ]]
  "$DDLRUN_BUILD/bin/ddlctl" checkpoint export run exported.safetensors
  cmp exported.safetensors out/model.safetensors
  # A last layer of its own has no classes of before.
  expect=0 run_mode train --data_dir="$backwards" --init_from=out/model.safetensors --new_head --results_dir=new --num_iter=2
  [ "$(jq -c .manifest.class_names new/checkpoints/step-0000000002/manifest.json)" = '["eel","dog","cat"]' ]
}

@test "the same classes are no difference, nor are texts, other directories or a data set without labels.txt" {
  trained 2 --export_dir=out
  [ "$(jq -c .manifest.class_names run/checkpoints/*/manifest.json)" = '["cat","dog","eel"]' ]
  cp -r "$onwards" moved
  sed -i 's/$/a text/' moved/labels.txt
  sed -i '1s/a text//' moved/labels.txt
  for data_dir in "$onwards" moved; do
    expect=0 run_mode evaluate --data_dir="$data_dir" --model_dir=run
    expect=0 run_mode evaluate --data_dir="$data_dir" --init_from=out/model.safetensors
  done
  cp -r "$backwards" bare
  rm bare/labels.txt
  expect=0 run_mode evaluate --data_dir=bare --init_from=out/model.safetensors --export_dir=through
  [[ $messages != *"label 1"* ]]
  # The weights keep what they have learnt, through data that do not tell.
  expect=0 run_mode train --data_dir=bare --results_dir=run --num_iter=3
  expect=65 run_mode evaluate --data_dir="$backwards" --model_dir=run
  expect=65 run_mode evaluate --data_dir="$backwards" --init_from=through/model.safetensors
}

@test "names of classes that are no UTF-8 are compared as they are" {
  local name=$'caf\xe9'
  cp -r "$onwards" latin
  sed -i "s/\tcat\t/\t$name\t/" latin/labels.txt
  expect=0 run_mode train --data_dir=latin --results_dir=run --num_iter=2 --export_dir=out
  expect=0 run_mode evaluate --data_dir=latin --init_from=out/model.safetensors
  refuses 'label 1 is "cat" in '"$onwards"'/labels.txt, and "caf\xe9" in out/model.safetensors' evaluate --data_dir="$onwards" \
    --init_from=out/model.safetensors
}

@test "a list of names for predictions may have other names, but not those of other labels" {
  local image="$images/train/cat/n00000001_0.JPEG"
  trained 2
  printf 'Katze\nHund\nAal\n' > german
  expect=0 run_mode predict --labels=german --model_dir=run --to_predict="$image"
  [[ $output == *Katze* ]]
  printf 'background\ncat\ndog\neel\n' > shifted
  refuses 'label 2 is "cat" in shifted, and "dog" in run/checkpoints/step-0000000002' predict --labels=shifted --model_dir=run \
    --to_predict="$image"
}

@test "a resume says that images or labels have changed where files have the same names and sizes" {
  trained 2
  expect=0 run_mode train --data_dir="$backwards" --results_dir=run --num_iter=3 --ignore_mismatched_classes
  [[ $messages == *"changed since step 2: training data 48 images in 1 file (now as many in files of the same names and sizes, but other images or other labels: checksum in ddldata.manifest "* ]]
  expect=0 run_mode train --data_dir="$backwards" --results_dir=run --num_iter=4
  [[ $messages != *"training data"* ]]
}

@test "a top-1 is compared with those of the same validation images alone" {
  local best
  trained 4 --eval_every=1
  best=$(jq -s 'map(.manifest | select(.top1)) | max_by(.top1) | .step' run/checkpoints/*/manifest.json)
  expect=0 run_mode train_and_evaluate --data_dir="$few" --results_dir=run --num_iter=6 --eval_every=1 --keep_checkpoints=1
  [[ $messages == *"validation data changed since step 4: 48 images in 1 file (now 16 images in 1 file); the best so far starts anew"* ]]
  [[ $messages == *"best so far"* ]]
  # The best of the images of before is not kept, and not begun with.
  [ ! -e run/checkpoints/step-000000000"$best" ]
  expect=0 run_mode train --data_dir="$few" --init_from=run --results_dir=next --num_iter=1
  [[ $messages == *"initial weights: run/checkpoints/step-000000000"[56]"/"* ]]
  expect=0 run_mode train_and_evaluate --data_dir="$few" --results_dir=run --num_iter=7 --eval_every=1 --keep_checkpoints=1
  [[ $messages != *"validation data changed"* ]]
}
