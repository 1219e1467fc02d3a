#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The training that each template starts, as it stands there; tests/cluster runs them with a smaller one.

@test "ddltraind takes the options of every template" {
  cd "$BATS_TEST_DIRNAME/../../slurm-templates" || exit 1
  found=0
  for template in *.sbatch; do
    grep -q '^[^#]*ddltraind "${options\[@\]}"' "$template" || continue
    options=()
    eval "$(sed -n '/^options=($/,/^)$/p' "$template")"
    # Small images: this machine may have no memory for the real ones, which a dry run would say.
    "$DDLRUN_BUILD/bin/ddltraind" --dry_run "${options[@]}" --image_size=32 > "$BATS_TEST_TMPDIR/plan"
    found=$((found + 1))
  done
  [ $found -eq 4 ]
}

@test "ddltraind takes the command of Bede's benchmark" {
  local data="$BATS_TEST_TMPDIR/data"
  "$DDLRUN_BUILD/bin/ddldata" synth --classes 10 --images 512 --validation_images 8 --size 32 "$data" > /dev/null
  module() { :; }
  # As Bede's wrapper is called: the program, then its options; the data are elsewhere, and the images small.
  bede-ddlrun() {
    [ "$1" = ddltraind ]
    shift
    "$DDLRUN_BUILD/bin/ddltraind" --dry_run "$@" --data_dir="$data" --image_size=32
  }
  SLURM_JOB_NAME=resnet50-4 . "$BATS_TEST_DIRNAME/../../slurm-templates/bede-resnet50-4.sbatch" > "$BATS_TEST_TMPDIR/plan"
  grep -q "^learning rate     0.256 after 16 steps of warm-up, cosine decay" "$BATS_TEST_TMPDIR/plan"
  grep -q "^steps             100 in 50 epochs of 2" "$BATS_TEST_TMPDIR/plan"
}
