#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# ddldata convert --boxes: bounding boxes of the training images, from TensorFlow's list or ImageNet's annotations.

load common

# The images of a split that have bounding boxes.
images_with_boxes() { "$ddldata" stats --json "$1" | jq ".splits.$2.images_with_boxes"; }

@test "TensorFlow's list, and ImageNet's annotations in a directory and in a tar, make the same bytes" {
  expect=0 convert list --train "$images/train" --validation "$images/val" --validation_labels "$images/val_synsets.txt" \
    --boxes "$images/boxes.csv" --shards 3
  [ "$output" = "list: 60 training and 20 validation images of 5 classes in 4 files; 30 training images with bounding boxes" ]
  [[ $messages != *note* ]]
  [ "$(images_with_boxes list train)" -eq 30 ]
  [ "$(images_with_boxes list validation)" -eq 0 ]
  trains_on list
  convert directory --train "$images/train" --validation "$images/val" --validation_labels "$images/val_synsets.txt" \
    --boxes "$images/annotations" --shards 3 --threads 1
  same_bytes list directory
  tar -cf boxes.tar -C "$images/annotations" .
  convert tar --train "$images/train" --validation "$images/val" --validation_labels "$images/val_synsets.txt" \
    --boxes boxes.tar --shards 3 --threads 4
  same_bytes list tar
}

@test "the boxes are those of the images" {
  # The set that the images are of has a box for each: those of every other image must be among them.
  convert set --train "$images/train" --boxes "$images/boxes.csv" --shorter_side 24
  python3 "$BATS_TEST_DIRNAME/images.py" set again
  [ "$(wc -l < again/boxes.csv)" -gt 0 ]
  [ -z "$(cut -d, -f 2- again/boxes.csv | sort | comm -23 - <(cut -d, -f 2- "$images/boxes.csv" | sort))" ]
}

@test "a conversion goes on with the same boxes only" {
  convert set --train "$images/train" --shards 4 --boxes "$images/boxes.csv"
  rm set/train-00002-of-00004 set/ddldata.manifest
  head -n 5 "$images/boxes.csv" > few.csv
  refused 64 ", 5 of them with bounding boxes, list " set --train "$images/train" --shards 4 --boxes few.csv
  refused 64 "set is of another conversion: there it is \"train-* 60 images, " set --train "$images/train" --shards 4
  convert set --train "$images/train" --shards 4 --boxes "$images/annotations"
  [ "$output" = "set: 60 training and 0 validation images of 5 classes in 4 files, 3 of them from before; 30 training images with bounding boxes" ]
  convert whole --train "$images/train" --shards 4 --boxes "$images/boxes.csv"
  same_bytes whole set
}

@test "a list of other images is a note" {
  echo n99999999_1.JPEG,0,0,1,1 > other.csv
  expect=0 convert set --train "$images/train" --boxes other.csv
  [[ $messages == *"ddldata: note: no training image has a bounding box in other.csv, which has those of 1 other image, one by the name n99999999_1"* ]]
  [ "$output" = "set: 60 training and 0 validation images of 5 classes in 1 file; 0 training images with bounding boxes" ]
}

@test "help and refusals" {
  expect=0 convert --help
  [[ $output == *"--boxes FILE|DIR"* ]]
  refused 64 "--boxes needs --train=PATH" set --validation "$images/train" --boxes "$images/boxes.csv"
  refused 65 "nowhere.csv: No such file" set --train "$images/train" --boxes nowhere.csv
  # Kaggle's list is in pixels of images that it does not say the size of.
  printf '%s\n' ImageId,PredictionString 'n00000001_0,n00000001 1 2 30 40 ' > LOC_train_solution.csv
  refused 65 "LOC_train_solution.csv:1: expected FILE,xmin,ymin,xmax,ymax, not \"ImageId,PredictionString\"" \
    set --train "$images/train" --boxes LOC_train_solution.csv
  echo n00000001_0.JPEG,1,2,30,40 > pixels.csv
  refused 65 "pixels.csv:1: the ymin \"2\" is not from 0 to 1" set --train "$images/train" --boxes pixels.csv
  tar -czf boxes.tar.gz -C "$images/annotations" .
  refused 65 "the file is compressed: unpack it with gunzip first" set --train "$images/train" --boxes boxes.tar.gz
  refused 65 "$images/val has no annotations: no file whose name ends as .xml" set --train "$images/train" --boxes "$images/val"
  cp -r "$images/annotations" annotations
  first=$(find annotations -name '*.xml' | sort | head -n 1)
  sed -i 's/<width>10000/<width>0/' "$first"
  refused 65 "$first:3: <width> is \"0\", expected a number from 1 to 1000000" set --train "$images/train" --boxes annotations
  truncate -s 50 "$first"
  refused 65 "$first:3: the file ends within " set --train "$images/train" --boxes annotations
  [ ! -e set ]
}
