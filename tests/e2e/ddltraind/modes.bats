#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Every mode, and the options that change what a step does, once.

load common

trained() {
  expect=0 train 2 --num_iter=4 --mode=train --results_dir=run
}

@test "train, and no evaluation" {
  trained
  [[ $output == *"Ending Model Training"* ]]
  [[ $output != *"Accuracy"* ]]
  [ -e run/checkpoints/step-0000000004/manifest.json ]
}

accuracy_of() {
  grep -o "Top-. Accuracy.*"
}

@test "evaluate what a run has trained, with any number of ranks" {
  train 2 --num_iter=4 --results_dir=run
  accuracy=$(accuracy_of <<< "$output")
  [ "$(wc -l <<< "$accuracy")" -eq 2 ]
  expect=0 train 1 --mode=evaluate --results_dir=again --model_dir=run
  [[ $output != *"Model Training"* ]]
  [[ $messages == *"evaluation of 40 images"* ]]
  [ "$(accuracy_of <<< "$output")" = "$accuracy" ]
  expect=0 train 2 --mode=evaluate --results_dir=again --init_from=run/checkpoints/step-0000000004/model.safetensors
  [ "$(accuracy_of <<< "$output")" = "$accuracy" ]
  # As the trainer whose options these are, it writes what it has evaluated.
  expect=0 train 2 --mode=evaluate --results_dir=again --model_dir=run --export_dir=new/weights
  diff <(python3 "$safetensors" names new/weights/model.safetensors) \
    <(python3 "$safetensors" names run/checkpoints/step-0000000004/model.safetensors)
  train 1 --mode=evaluate --results_dir=again --init_from=new/weights/model.safetensors
  [ "$(accuracy_of <<< "$output")" = "$accuracy" ]
}

@test "evaluations while training change nothing, and the best weights are kept for others to take" {
  expect=0 train 2 --num_iter=6 --results_dir=plain
  expect=0 train 2 --num_iter=6 --eval_every=2 --keep_checkpoints=1 --results_dir=run
  [ "$(grep -c "Top-1 Accuracy" <<< "$output")" -eq 3 ]
  cmp plain/checkpoints/step-0000000006/model.safetensors run/checkpoints/step-0000000006/model.safetensors
  best=$(sed -n 's/.*the best so far: the checkpoint of step [0-9]*, with top-1 \([0-9.]*\) %.*/\1/p' <<< "$messages" | tail -1)
  expect=0 train 1 --mode=evaluate --init_from=run --results_dir=other
  [[ $output == *"Top-1 Accuracy: $best"* ]]
  expect=64 train 2 --num_iter=6 --mode=train --eval_every=2 --results_dir=other
  [[ $messages == *"give --mode=train_and_evaluate, not train"* ]]
}

@test "predict the classes of an image file" {
  trained
  python3 - "$data"/validation-00000-of-00002 <<'PY'
import struct, sys
content = open(sys.argv[1], "rb").read()
record = content[12:12 + struct.unpack_from("<Q", content)[0]]
open("image.jpg", "wb").write(record[record.index(b"\xff\xd8\xff"):record.rindex(b"\xff\xd9") + 2])
PY
  expect=0 train 1 --mode=predict --to_predict=image.jpg --model_dir=run
  [ "$(grep -cE '^class [0-9] probability 0\.[0-9]+' <<< "$output")" -eq 5 ]
  echo "not an image" > text.jpg
  expect=65 train 1 --mode=predict --to_predict=text.jpg --model_dir=run
  [[ $messages == *"text.jpg: "* ]]
}

# count_of_predictions WEIGHTS...: "top-1 N.NNN %, top-5 N.NNN %" of all validation images, counted here from what predict prints.
count_of_predictions() {
  expect=0 train 1 --mode=predict --to_predict images --json "$@"
  python3 - "$output" <<'PY'
import json, pathlib, sys
labels = json.loads(pathlib.Path("labels.json").read_text())
counts = {1: 0, 5: 0}
for line in sys.argv[1].splitlines():
    if not line.startswith("{"):
        continue
    image = json.loads(line)
    classes = [entry["class"] + 1 for entry in image["classes"]]
    label = labels.pop(image["file"])
    for k in counts:
        counts[k] += label in classes[:k]
assert not labels, labels
of = len(json.loads(pathlib.Path("labels.json").read_text()))
print(f"evaluation of {of} images: top-1 {100 * counts[1] / of:.3f} %, top-5 {100 * counts[5] / of:.3f} %")
PY
}

@test "evaluation counts what a count of the predictions finds, also where all logits are equal" {
  trained
  mkdir images
  python3 - "$data" <<'PY'
import json, pathlib, struct, sys
labels = {}
for shard in sorted(pathlib.Path(sys.argv[1]).glob("validation-*")):
    content, at = shard.read_bytes(), 0
    while at < len(content):
        size = struct.unpack_from("<Q", content, at)[0]
        record = content[at + 12:at + 12 + size]
        at += size + 16
        feature = record[record.index(b"image/class/label") + len(b"image/class/label"):]
        name = f"images/{len(labels):03}.jpg"
        labels[name] = feature[1 + feature[1]]  # the last byte of the feature: labels here are below 128
        pathlib.Path(name).write_bytes(record[record.index(b"\xff\xd8\xff"):record.rindex(b"\xff\xd9") + 2])
pathlib.Path("labels.json").write_text(json.dumps(labels))
PY
  cp run/checkpoints/step-0000000004/model.safetensors equal.safetensors
  python3 - equal.safetensors <<'PY'
import json, pathlib, struct, sys
path = pathlib.Path(sys.argv[1])
content = bytearray(path.read_bytes())
size = struct.unpack_from("<Q", content)[0]
for name, tensor in json.loads(content[8:8 + size]).items():
    if name.startswith("fc."):
        begin, end = (8 + size + offset for offset in tensor["data_offsets"])
        content[begin:end] = bytes(end - begin)
path.write_bytes(content)
PY
  for weights in --model_dir=run --init_from=equal.safetensors; do
    wanted=$(count_of_predictions "$weights")
    for ranks in 1 2; do
      expect=0 train $ranks --mode=evaluate "$weights"
      [[ $messages == *"$wanted, "* ]] || { echo "not $wanted: $messages"; false; }
    done
  done
  [ "$wanted" != "$(sed 's/top-1 [0-9.]*/top-1 100.000/' <<< "$wanted")" ] # equal logits make no accuracy
}

@test "predict several images and directories, with the names of classes, for people and programs" {
  trained
  mkdir -p images/below
  python3 - "$data"/validation-00000-of-00002 <<'PY'
import struct, sys, zlib
content = open(sys.argv[1], "rb").read()
record = content[12:12 + struct.unpack_from("<Q", content)[0]]
open("images/below/b.jpg", "wb").write(record[record.index(b"\xff\xd8\xff"):record.rindex(b"\xff\xd9") + 2])
def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
open("images/a.JPEG", "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 40, 48, 8, 2, 0, 0, 0)) +
                                 chunk(b"IDAT", zlib.compress((b"\0" + b"\x50" * 120) * 48)) + chunk(b"IEND", b""))
PY
  for n in {1..10}; do echo "class_$n the $n. class"; done > names
  expect=0 train 1 --mode=predict --to_predict images images/a.JPEG --model_dir=run --labels=names
  [ "$(grep ':$' <<< "$output")" = "$(printf '%s\n' images/a.JPEG: images/below/b.jpg: images/a.JPEG:)" ]
  [ "$(grep -cE '^class [0-9] probability [0-9.e-]+ class_[0-9]+ the [0-9]+\. class$' <<< "$output")" -eq 15 ]
  expect=0 train 1 --mode=predict --to_predict images --model_dir=run --labels=names --json
  [ "$(jq -rc '[.file, (.classes | length), (.classes[] | select(.label != .class + 1 or .name != "class_\(.label)"))]' <<< "$output")" = \
    "$(printf '%s\n' '["images/a.JPEG",5]' '["images/below/b.jpg",5]')" ]
  echo text > images/c.png
  expect=65 train 1 --mode=predict --to_predict images --model_dir=run --json
  [[ $messages == *"1 of 3 images could not be read, the first is images/c.png: "* ]]
  [ "$(jq -rc 'has("error")' <<< "$output" | paste -sd ' ')" = "false false true" ]
  printf 'label\tclass\ttext\n' > labels.txt
  for n in {1..10}; do printf '%s\tfolder_%s\t\n' "$n" "$n"; done >> labels.txt
  mkdir named
  mv labels.txt named
  train 1 --mode=predict --to_predict images/a.JPEG --model_dir=run --data_dir=named
  [ "$(grep -cE '^class [0-9] probability [0-9.e-]+ folder_[0-9]+$' <<< "$output")" -eq 5 ]
  expect=65 train 1 --mode=predict --to_predict nowhere --model_dir=run
  [[ $messages == *"cannot read nowhere: No such file"* ]]
  expect=65 train 1 --mode=predict --to_predict images/a.JPEG --model_dir=run --labels=nowhere
  [[ $messages == *"cannot open nowhere"* ]]
}

@test "labels far below --classes are said once" {
  expect=0 train 2 --mode=train --num_iter=2 --results_dir=run --classes=100
  [ "$(grep -c "the labels in $data end at 10 (in some records of all its files), but --classes is 100" <<< "$messages")" -eq 1 ]
  expect=0 train 2 --mode=train --num_iter=2 --results_dir=other --classes=15
  [[ $messages != *"the labels in "* ]]
}

@test "training benchmark: images per second, and no checkpoint" {
  expect=0 train 2 --mode=training_benchmark --num_iter=20 --warmup_steps=10 --results_dir=run
  [[ $output == *"train_throughput"* ]]
  [[ $messages == *"median of 10 steps: "*"images/s"*"exposed all-reduce"* ]]
  [ ! -e run/checkpoints ]
}

@test "inference benchmark" {
  expect=0 train 2 --mode=inference_benchmark --num_iter=20 --warmup_steps=10 --results_dir=run
  [[ $output == *"eval_throughput"* ]]
  [[ $messages == *"median of 10 steps: "*"images/s"* ]]
  [ ! -e run/checkpoints ]
}

# It has no checkpoint to go on from, so 75 would be a promise that it cannot keep.
@test "a benchmark that is stopped ends at once, and claims no checkpoint" {
  for mode in training_benchmark inference_benchmark; do
    "$ddltraind" "${small[@]}" --mode="$mode" --num_iter=100000000 --warmup_steps=5 --results_dir=run > out 2> err 3>&- &
    wait_for 20 test -e run/log.json
    kill -TERM $!
    expect=143 end_of "$!" err
    [[ $(cat err) == *"stopped by signal 15 after step "*"--mode=$mode writes no checkpoint"* ]]
    [ ! -e run/checkpoints ]
    rm -r run
  done
}

@test "a dry run shows the plan and writes nothing" {
  expect=0 train 2 --num_iter=20 --dry_run --results_dir=run
  [[ $output == *"global batch      16 images (2 ranks x 8)"* ]]
  [[ $output == *"steps             20 "* ]]
  [ ! -e run ]
}

@test "without a data directory, synthetic images" {
  small=("${small[@]/--data_dir=$data/--bad_records=stop}")
  expect=0 train 2 --num_iter=2 --results_dir=run
  [[ $output == *"Top-1 Accuracy"* ]]
  [[ $messages == *"warn"*": training on synthetic data (no --data_dir): accuracy is meaningless"* ]]
  expect=0 train 1 --mode=inference_benchmark --num_iter=20 --warmup_steps=10 --results_dir=bench
  [[ $messages == *"info: synthetic data (no --data_dir)"* ]]
  [[ $messages != *"means nothing"* ]]
}

@test "the final weights go where they are wanted, equal to the checkpoint's" {
  expect=0 train 2 --num_iter=4 --mode=train --results_dir=run --export_dir=final
  [ "$(ls -A final)" = model.safetensors ]
  diff <(python3 "$safetensors" names final/model.safetensors) \
    <(python3 "$safetensors" names run/checkpoints/step-0000000004/model.safetensors)
}

@test "the state of a step: weights, gradients, momentum, statistics" {
  expect=0 train 2 --num_iter=4 --mode=train --results_dir=run --dump_state=state --dump_state_step=2
  python3 "$safetensors" names state > all.txt
  for name in weight.fc.weight gradient.fc.weight momentum.fc.weight statistic.bn1.running_mean; do
    grep -qxF "$name" all.txt
  done
}

# Each of these options must be seen in the losses.
@test "mixup, label smoothing, frozen batch norm and augmentation change the losses" {
  local options=("" --mixup=0.2 --label_smoothing=0.1 --freeze_batch_norm --augment=none --augmentation=dali
    --augmentation=torchvision) option
  for option in "${options[@]}"; do
    expect=0 train 2 --num_iter=3 --mode=train --display_every=1 --results_dir="run$option" ${option:+"$option"}
    losses <<< "$output" | tr '\n' ' ' >> all
    echo >> all
  done
  cat all
  [ "$(sort -u all | wc -l)" -eq ${#options[@]} ]
  [ "$(wc -w < all)" -eq $((3 * ${#options[@]})) ]
}

@test "--bad_records=skip trains on the others and names those it left out" {
  cp -r "$data" damaged
  rm damaged/ddldata.manifest
  python3 "$damage" text damaged/train-00000-of-00008 damaged/train-00003-of-00008
  expect=0 train 2 --num_iter=13 --mode=train --data_dir=damaged --bad_records=skip --results_dir=run
  [[ $messages == *"warn"*"skipped: damaged/train-00000-of-00008, record at offset 0: "* ]]
  [[ $messages == *"skipped: damaged/train-00003-of-00008, record at offset 0: "* ]]
  expect=65 train 2 --num_iter=13 --mode=train --data_dir=damaged --bad_records=skip --max_bad_records=0 --results_dir=run2
}

@test "an option given twice counts as given last" {
  expect=0 train 1 --num_iter=9 --num_iter=2 --mode=train --results_dir=run
  [ "$(ls run/checkpoints)" = step-0000000002 ]
}
