#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# ddldata convert: from images as people have them to data sets that ddltraind trains on.

load common

# ImageNet's archives, small, in this directory.
make_archives() {
  local class
  mkdir -p tars
  for class in "$images"/train/*; do tar -cf "tars/${class##*/}.tar" -C "$class" .; done
  tar -cf ILSVRC2012_img_train.tar -C tars .
  tar -cf ILSVRC2012_img_val.tar -C "$images/val" .
}

@test "a directory of classes, and validation images with a list" {
  expect=0 convert set --train "$images/train" --validation "$images/val" --validation_labels "$images/val_synsets.txt"
  [ "$output" = "set: 60 training and 20 validation images of 5 classes in 2 files" ]
  [ "$(ls set)" = "$(printf '%s\n' ddldata.conversion ddldata.manifest labels.txt train-00000-of-00001 validation-00000-of-00001)" ]
  [ "$(cut -f 2 set/labels.txt)" = "$(printf '%s\n' class; ls "$images/train")" ]
  trains_on set
}

@test "ImageNet's archives by the commands of the user guide" {
  make_archives
  cp "$images/val_synsets.txt" imagenet_2012_validation_synset_labels.txt
  awk '/^```[a-z]/ { block = ""; next } /^```$/ { if (block ~ /ILSVRC2012_img_train.tar/) print block; next }
    { block = block $0 "\n" }' "$BATS_TEST_DIRNAME/../../../doc/user-guide/training.md" > commands
  [ "$(grep -c 'ddldata convert' commands)" -eq 1 ]
  sed -i 's/--classes 1000/--classes 5/' commands
  PATH="$DDLRUN_BUILD/bin:$PATH" bash -euo pipefail commands
  trains_on DATA
  convert set --train "$images/train" --validation "$images/val" --validation_labels "$images/val_synsets.txt"
  same_bytes DATA set
}

@test "the development kit's numbers need the list that they count" {
  make_archives
  refused 65 "val_numbers.txt:1: the class is the number " set --train ILSVRC2012_img_train.tar \
    --validation ILSVRC2012_img_val.tar --validation_labels "$images/val_numbers.txt"
  expect=0 convert numbers --train ILSVRC2012_img_train.tar --validation ILSVRC2012_img_val.tar \
    --validation_labels "$images/val_numbers.txt" --class_numbers "$images/synsets_by_number.txt"
  convert synsets --train ILSVRC2012_img_train.tar --validation ILSVRC2012_img_val.tar \
    --validation_labels "$images/val_synsets.txt"
  same_bytes numbers synsets
  trains_on numbers
}

@test "one tar of directories, a directory of tars, and all formats of tar" {
  make_archives
  convert directory --train "$images/train" --shards 3
  convert of_tars --train tars --shards 3
  same_bytes directory of_tars
  trains_on of_tars
  for format in v7 ustar gnu pax; do
    tar --format="$format" -cf "$format.tar" -C "$images" train
    convert "$format" --train "$format.tar" --shards 3
    same_bytes directory "$format"
  done
  tar --format=ustar -cf - -C "$images" train | gzip > train.tar.gz
  refused 65 "the file is compressed: unpack it with gunzip first" gzip --train train.tar.gz
}

@test "WebDataset shards" {
  mkdir shards
  (cd "$images/web" && printf '%s\n' 00000* 00001* 00002* > "$BATS_TEST_TMPDIR/first")
  (cd "$images/web" && printf '%s\n' 00003* 00004* 00005* > "$BATS_TEST_TMPDIR/second")
  tar -cf shards/train-000.tar -C "$images/web" -T first
  tar -cf shards/train-001.tar -C "$images/web" -T second
  convert set --train shards/train-*.tar --shards 3 --threads 2
  [ "$output" = "set: 60 training and 0 validation images of 5 classes in 3 files" ]
  trains_on set
  convert directory --train shards --shards 3
  same_bytes set directory
  # The classes are those of the directories.
  convert classes --train "$images/train" --shards 3
  [ "$("$ddldata" stats --json set | jq -c .splits.train.images_per_class)" = \
    "$("$ddldata" stats --json classes | jq -c .splits.train.images_per_class)" ]
}

@test "the same bytes on one thread and on four, also of images that are made smaller" {
  for threads in 1 4; do
    convert "as_is.$threads" --train "$images/train" --shards 7 --threads "$threads"
    expect=0 convert "small.$threads" --train "$images/train" --shards 7 --threads "$threads" --shorter_side 32 --quality 85
  done
  same_bytes as_is.1 as_is.4
  same_bytes small.1 small.4
  [ "$("$ddldata" stats --json small.1 | jq '[.splits.train.width.min, .splits.train.height.min] | min')" -eq 32 ]
  trains_on small.1
}

@test "images that are none stop the conversion, or are left out" {
  cp -r "$images/train" train
  echo "no image" > train/n00000002/odd.JPEG
  refused 65 "train/n00000002/odd.JPEG: the image is not a JPEG file: it is text" set --train train --threads 1
  [[ $messages == *"--bad_images=skip leaves such images out"* ]]
  expect=0 convert set --train train --bad_images skip
  [[ $messages == *"ddldata: note: left out: train/n00000002/odd.JPEG: "* ]]
  [ "$output" = "set: 60 training and 0 validation images of 5 classes in 1 file; 1 image left out" ]
  trains_on set
  convert boxes --train train --bad_images skip --boxes "$images/boxes.csv"
  [ "$output" = "boxes: 60 training and 0 validation images of 5 classes in 1 file; 30 training images with bounding boxes, \
of all that were found; 1 image left out" ]
}

@test "stats finds images that are there twice" {
  cp -r "$images/train" train
  cp train/n00000001/n00000001_0.JPEG train/n00000002/again.JPEG
  convert set --train train
  run -0 "$ddldata" stats set
  [[ $output == *"1 image more than once; 0 in both splits, 1 with two labels"* ]]
  [ "$("$ddldata" stats --json set | jq '.duplicates | length')" -eq 1 ]
}

@test "a directory that both splits have" {
  ln -s "$images/train" link
  expect=0 convert set --train "$images/train" --validation link
  [[ $messages == *"ddldata: note: link is among the training and the validation images"* ]]
  mkdir tars
  tar -cf tars/n1.tar -C "$images" --transform 's|.*/||' train/n00000001
  tar -cf tars/n2.tar -C "$images" --transform 's|.*/||' train/n00000002
  convert tarset --train tars/n1.tar tars/n2.tar --validation tars
  [[ $messages == *"ddldata: note: tars/n1.tar is among the training and the validation images"* ]]
  printf "%s\n" "$images"/train/* n1 n2 | sed "s,.*/,," > classes
  expect=0 convert other --train "$images/train" --validation tars --class_list classes
  [[ $messages != *"is among"* ]]
}

@test "a directory of splits instead of one of classes" {
  mkdir both
  cp -r "$images/train" both/train
  cp -r "$images/train" both/val
  expect=0 convert set --train both
  [[ $messages == *"note: the classes have the names of splits, such as train: "*"; did you mean both/train?"* ]]
  mv both/train both/2019
  convert years --train both
  [[ $messages == *"note: directories of one name are in several classes, n00000001 in 2019 and in val: "* ]]
  ls both > classes
  expect=0 convert listed --train both --class_list classes
  [[ $messages != *note* ]]
}

@test "refusals" {
  refused 64 "there is nothing to convert" set
  refused 64 "--bad_images" set --train "$images/train" --bad_images ignore
  refused 64 "--shards must be at most 60, not 61" set --train "$images/train" --shards 61
  refused 65 "cannot read nowhere: No such file" set --train nowhere
  refused 65 "the image lies in no directory, which would be its class" set --train "$images/val"
  refused 65 "val_synsets.txt names the classes of 20 images, but $images/train has 60" set --train "$images/train" \
    --train_labels "$images/val_synsets.txt"
  [ ! -e set ]
  convert set --train "$images/train"
  refused 64 "set is of another conversion: there it is \"seed 12345\", now it would be \"seed 3\"" set --train "$images/train" --seed 3
  refused 64 "already has data files" "$BATS_FILE_TMPDIR/data" --train "$images/train"
}
