# SPDX-License-Identifier: Apache-2.0
# What the tests of ddldata share: images in directories, and ways to look at what was made of them.

load ../common

setup_file() {
  export images="$BATS_FILE_TMPDIR/images"
  "$DDLRUN_BUILD/bin/ddldata" synth --classes 5 --images 60 --validation_images 20 --size 36-48 "$BATS_FILE_TMPDIR/data"
  python3 "$BATS_TEST_DIRNAME/images.py" "$BATS_FILE_TMPDIR/data" "$images"
}

setup() {
  enter_test_directory
  ddldata="$DDLRUN_BUILD/bin/ddldata"
}

# convert DATA_DIR OPTIONS...: status, standard output in $output, the rest in $messages.
convert() {
  run_separate timeout 60 "$ddldata" convert "$@"
  echo "$status: $output: $messages"
}

# refused CODE TEXT DATA_DIR OPTIONS...
refused() {
  local code=$1 text=$2
  shift 2
  convert "$@"
  [ "$status" -eq "$code" ]
  [[ $messages == *"ddldata: "*"$text"* ]]
}

# Two steps of training on a data set that verifies.
trains_on() {
  local mode=train
  [ ! -e "$(echo "$1"/validation-* | cut -d' ' -f1)" ] || mode=train_and_evaluate
  "$ddldata" verify --classes 5 "$1"
  timeout 60 "$DDLRUN_BUILD/bin/ddltraind" --arch=resnet_tiny --data_dir="$1" --classes=5 --image_size=32 --batch_size=8 \
    --iter_unit=batch --num_iter=2 --lr_warmup_epochs=0 --threads=1 --mode="$mode" --results_dir="results-${1##*/}"
}

# The two directories have the same files, byte for byte.
same_bytes() {
  diff -r "$1" "$2"
}
