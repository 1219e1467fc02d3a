#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What a class is: the same in directories, in tars, in lists of tars and in WebDataset's shards; and that one label is one class.

load common

# names DATA_DIR: the classes in the order of their labels.
names() {
  tail -n +2 "$1/labels.txt" | cut -f 2 | paste -sd' '
}

# copy_image CLASS NUMBER FILE: an image of the class.
copy_image() {
  mkdir -p "$(dirname "$3")"
  cp "$images/train/n0000000$1/n0000000$1_$2.JPEG" "$3"
}

# make_tree DIR SUBDIRECTORY...: cat, dog and eel, each with such directories.
make_tree() {
  local dir=$1 class number=0 below
  shift
  for class in cat dog eel; do
    for below in "$@"; do copy_image 1 $((number++ % 4)) "$dir/$class/$below/$class$number.jpg"; done
  done
}

@test "a tar of a tree has the classes of the tree, and its notes" {
  make_tree nest 2020 2021
  expect=0 convert folder --train nest
  [[ $messages == *"directories of one name are in several classes, 2020 in cat and in dog: the class of an image is the directory right below the one that is given"* ]]
  tar -cf nest.tar nest
  tar -cf dots.tar -C nest .
  tar -cf deep.tar --transform 's,^,a/b/,' nest
  for tar in nest dots deep; do
    expect=0 convert "of_$tar" --train "$tar.tar"
    [[ $messages == *"directories of one name are in several classes, 2020 in cat and in dog: the class of an image is the directory right below the one that all lie in"* ]]
    [ "$(names "of_$tar")" = "cat dog eel" ]
    same_bytes folder "of_$tar"
  done
  # Tiny ImageNet's layout.
  make_tree tiny images
  tar -cf tiny.tar tiny
  expect=0 convert tiny_tar --train tiny.tar
  [ "$(names tiny_tar)" = "cat dog eel" ]
  # Imagenette's, in one tar.
  mkdir imagenette2
  cp -r tiny imagenette2/train
  cp -r tiny imagenette2/val
  tar -cf imagenette.tar imagenette2
  expect=0 convert imagenette --train imagenette.tar
  [[ $messages == *"the classes have the names of splits, such as train"*"; unpack imagenette.tar, or pack a tar of train alone"* ]]
}

@test "parts of a set may have images of one class alone" {
  make_tree nest 2020 2021
  tar -cf part_1.tar -C nest .
  tar -cf part_2.tar -C nest --transform 's,dog/202,dog/203,' dog
  expect=0 convert parts --train part_1.tar part_2.tar
  [ "$(names parts)" = "cat dog eel" ]
  # Roots of their own are said.
  cp -r nest other
  tar -cf part_3.tar nest
  tar -cf part_4.tar other
  expect=0 convert roots --train part_3.tar part_4.tar
  [ "$(names roots)" = "cat dog eel" ]
  [[ $messages == *"the classes are the directories in nest of part_3.tar, and in other of part_4.tar"* ]]
  # As in a directory: images beside those in directories.
  copy_image 1 1 nest/more.jpg
  tar -cf beside.tar nest
  refused 65 "beside.tar, nest/more.jpg: the image lies in no directory, which would be its class" beside --train beside.tar
}

@test "numbered tars of images side by side are parts, whose classes are the synsets in the names" {
  local class
  mkdir flat hub
  for class in 1 2 3; do
    for number in 0 1 2; do copy_image $class $number "flat$number/n0000000${class}_${number}_n0000000$class.JPEG"; done
  done
  for number in 0 1 2; do tar -cf "hub/train_images_$number.tar" -C "flat$number" .; done
  local sources
  for sources in "hub" "hub/train_images_0.tar hub/train_images_1.tar hub/train_images_2.tar"; do
    rm -rf set
    expect=0 convert set --train $sources
    [ "$(names set)" = "n00000001 n00000002 n00000003" ]
    [[ $messages == *"the images lie in no directories: their classes are the synsets in their names, n0000000"* ]]
  done
  copy_image 1 3 val/ILSVRC2012_val_00000001_n00000001.JPEG
  tar -cf val_images.tar -C val .
  expect=0 convert both --train hub --validation val_images.tar
  [ "$output" = "both: 9 training and 1 validation images of 3 classes in 2 files" ]
  copy_image 2 3 flat0/other.JPEG
  tar -cf hub/train_images_0.tar -C flat0 .
  refused 65 "train_images_0.tar, train_images_1.tar: the names of the tars differ in a number alone, so they are parts of one set and no classes" \
    other --train hub
  # Tars of classes, also numbered ones.
  expect=0 convert of_classes --train "$images/train"
  mkdir classes
  for class in 1 2 3; do tar -cf "classes/class_$class.tar" -C "flat$((class - 1))" .; done
  expect=0 convert numbered --train classes
  [ "$(names numbered)" = "class_1 class_2 class_3" ]
}

@test "a list in the order of names whose numbers have another order is refused" {
  for number in $(seq 12); do
    copy_image 1 $((number % 4)) "flat/val_$number.JPEG"
    echo "n0000000$((number % 3 + 1))" >> classes.txt
    echo "val_$number.JPEG,n0000000$((number % 3 + 1))" >> files.txt
  done
  refused 65 "classes.txt: a class in each line counts the images in the order of their names, in which numbers have another order: line 4 would be the class of val_12.JPEG, and line 5 that of val_2.JPEG; write FILE,CLASS in each line" \
    set --train flat --train_labels classes.txt
  expect=0 convert set --train flat --train_labels files.txt
  for number in $(seq 9); do mv "flat/val_$number.JPEG" "flat/val_0$number.JPEG"; done
  expect=0 convert padded --train flat --train_labels classes.txt
}

@test "links to nothing and class directories that are the same are refused" {
  make_tree in .
  ln -s /nowhere/fox in/fox
  refused 65 "cannot read in/fox, a link to /nowhere/fox: No such file or directory" set --train in
  tar -cf links.tar in
  refused 65 "links.tar, in/fox: a link to another file: pack the files themselves with tar --dereference" set --train links.tar
  rm in/fox
  ln -s cat in/kitty
  refused 65 "in/kitty is the same as in/cat: its images would count twice; remove one of the two" set --train in
  rm in/kitty
  ln -s ../dog in/cat/more
  refused 65 "in/dog is the same as in/cat/more: its images would count twice" set --train in
}

@test "WebDataset's numbers from 1, and names that are nearly the same, are said" {
  mkdir shard
  for class in 1 2 3; do
    copy_image $class 0 "shard/$class.jpg"
    echo $class > "shard/$class.cls"
  done
  tar -cf web.tar -C shard .
  expect=0 convert set --train web.tar
  [[ $messages == *"no training image has the class 0 (KEY.cls), from which WebDataset counts, so that label 1 is of none of them"* ]]
  echo 0 > shard/1.cls
  tar -cf web.tar -C shard .
  expect=0 convert zero --train web.tar
  [[ $messages != *" image has the class 0"* ]]
  echo 4 > shard/1.cls
  tar -cf other.tar -C shard .
  refused 65 "other.tar, 1.jpg: the image has the class 4 (KEY.cls), which is not among the 3 of the training images; --class_list=FILE" \
    unknown --train web.tar --validation other.tar
  make_tree in .
  mv in/dog in/Cat
  expect=0 convert alike --train in
  [[ $messages == *'the classes "Cat" and "cat" differ in capital letters alone'* ]]
  mv in/eel "in/cat "
  cp -r in of_validation
  rm -r "in/cat " in/Cat of_validation/Cat
  copy_image 2 1 in/dog/1.jpg
  refused 65 'the class "cat ", which is not among the 2 of the training images; the class "cat" differs from it in blanks at the ends' \
    blanks --train in --validation "of_validation"
}

@test "a directory too high, with all images in one class, is refused" {
  make_tree high/ImageNet/train .
  make_tree high/ImageNet/val .
  refused 65 'all images are of one class, "ImageNet", and lie in several directories of it: did you mean --train high/ImageNet/train? If they are one class, say so with --class_list=FILE' \
    set --train high
  [ ! -e set/labels.txt ]
  expect=0 convert meant --train high/ImageNet/train --validation high/ImageNet/val
  [ "$(names meant)" = "cat dog eel" ]
  printf 'ImageNet\nfox\n' > classes.txt
  expect=0 convert listed --train high --class_list classes.txt
  [ "$(names listed)" = "ImageNet fox" ]
  [[ $messages == *'note: classes of --class_list without images: 1 of 2; the first is "fox"'* ]]
}

@test "verify needs a line of labels.txt for each label, and says why it cannot read it" {
  make_tree in .
  expect=0 convert set --train in
  sed -i '$ d' set/labels.txt
  expect=65 run_separate "$ddldata" verify set --classes 3
  [[ $output == *'label 3 in train-00000-of-00001 (record at offset '*') has no line in labels.txt, which has those up to 2'*'1 problem'* ]]
  local text="label\tclass\ttext\n2\tdog\t\n"
  for text in "$text" "" "eel\ndog\ncat\n"; do
    printf "$text" > set/labels.txt
    expect=0 run_separate "$ddldata" verify set --classes 3
    [[ $messages == *"note: the classes are not compared with labels.txt: set/labels.txt:"* ]]
  done
  rm set/labels.txt
  expect=0 run_separate "$ddldata" verify set --classes 3
  [[ $messages != *"labels.txt"* ]]
  mkfifo set/labels.txt
  expect=0 run_separate timeout 20 "$ddldata" verify set --classes 3
  [[ $messages == *"note: the classes are not compared with labels.txt: set/labels.txt"* ]]
}

@test "validation images alone need the classes of the training" {
  make_tree in .
  expect=0 convert train --train in
  cp -r in few
  rm -r few/dog
  refused 64 "--validation without --train needs the classes of the training in the order of their labels: give --class_list=TRAIN_DATA_DIR/labels.txt" \
    alone --validation few
  expect=0 convert alone --validation few --class_list train/labels.txt
  [ "$(names alone)" = "cat dog eel" ]
}

@test "verify compares what labels are in both splits and in labels.txt" {
  make_tree in .
  printf 'eel\ndog\ncat\n' > backwards.txt
  expect=0 convert onwards --train in --validation in
  expect=0 convert backwards --train in --validation in --class_list backwards.txt
  "$ddldata" verify onwards --classes 3
  cp onwards/validation-* .
  cp backwards/validation-* onwards
  "$ddldata" manifest onwards
  expect=65 run_separate "$ddldata" verify onwards --classes 3
  [[ $output == *'label 1 is "cat" in labels.txt, and "eel" in validation-00000-of-00001 (record at offset '*'label 3 is "eel" in labels.txt, and "cat" in validation-'*'2 problems'* ]]
  rm onwards/labels.txt
  expect=65 run_separate "$ddldata" verify onwards --classes 3
  [[ $output == *'label 1 is "cat" in train-00000-of-00001 (record at offset '*', and "eel" in validation-00000-of-00001 (record at offset '* ]]
  cp validation-* onwards
  "$ddldata" manifest onwards
  cp backwards/labels.txt onwards
  expect=65 run_separate "$ddldata" verify onwards --classes 3
  [[ $output == *'label 1 is "eel" in labels.txt, and "cat" in train-00000-of-00001 (record at offset '* ]]
}

@test "images with an orientation, and boxes that were drawn on a turned image, are counted" {
  make_tree in .
  expect=0 convert plain --train in
  [[ $messages != *"EXIF"* ]]
  # Orientation 6 behind the first marker.
  python3 - in/cat/cat1.jpg in/dog/dog2.jpg << 'PYTHON'
import struct
import sys

exif = b"Exif\0\0II*\0" + struct.pack("<IHHHIHHI", 8, 1, 0x0112, 3, 1, 6, 0, 0)
for path in sys.argv[1:]:
    data = open(path, "rb").read()
    open(path, "wb").write(data[:2] + b"\xff\xe1" + struct.pack(">H", len(exif) + 2) + exif + data[2:])
PYTHON
  for options in "" "--shorter_side 20"; do
    expect=0 convert "turned${#options}" --train in $options
    [[ $messages == *"images with an EXIF orientation, which is not applied, so that they are used as they are stored, turned or mirrored: 2; one is in/cat/cat1.jpg"* ]]
  done
  mkdir boxes
  for size in "10 60" "60 10"; do
    set -- $size
    echo "<annotation><size><width>$1</width><height>$2</height></size><object><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>5</xmax><ymax>5</ymax></bndbox></object></annotation>" > boxes/eel3.xml
    expect=0 convert "boxes$1" --train in --boxes boxes
    [[ $messages == *"bounding boxes that were drawn on an image of another form, as on a turned one, and are most likely in the wrong places: of 1 image; in/eel/eel3.jpg has "*" pixels, its annotation is of $1x$2"* ]]
  done
}
