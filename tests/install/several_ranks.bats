#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tools/several-ranks with programs that are wrong, each in a way of its own: it must say so. What is right passes in gpu_check.bats.

bats_require_minimum_version 1.5.0

setup_file() {
  export data=$BATS_FILE_TMPDIR/data
  "$DDLRUN_BUILD/bin/ddldata" synth --classes 10 --images 200 --validation_images 20 --size 72 "$data"
}

setup() {
  cd "$BATS_TEST_TMPDIR" || exit 1
  mkdir bin work
  ln -s "$DDLRUN_BUILD"/bin/ddl{run,traind} bin/
}

# instead_of PROGRAM LINE...: a script, in which $real is the program.
instead_of() {
  local program=$1
  shift
  rm "bin/$program"
  printf '%s\n' '#!/bin/sh' "real=$DDLRUN_BUILD/bin/$program" "$@" > "bin/$program"
  chmod +x "bin/$program"
}

several_ranks() { # CHECK...
  cd "$BATS_TEST_TMPDIR/work" || exit 1
  run "$BATS_TEST_DIRNAME/../../tools/several-ranks" --bin ../bin --data "$data" --backend "${backend:-cpu}" --arch resnet_tiny --batch 8 "$@"
  echo "$output"
}

left_here() { readlink /proc/[0-9]*/cwd | grep -q "^$BATS_TEST_TMPDIR/work/"; }

refused() { # TEXT: a part of a line that says what is wrong
  [ "$status" -eq 1 ]
  grep -q "^FAILED .*$1" <<< "$output"
}

@test "a program that does nothing" {
  instead_of ddltraind 'exit 0'
  several_ranks starts 2 2
  refused "0 lines 'median of 10 steps: .* instead of 1"
  [[ $output == *"0 of 2 starts of 2 ranks were right"* ]]
}

@test "one start of three that dies" {
  instead_of ddltraind '[ "$RANK" != 1 ] || [ "${PWD##*/}" != start-2 ] || kill -SEGV $$' 'exec $real "$@"'
  several_ranks starts 2 3
  refused "start-2: exit status 139 instead of 0"
  [[ $output == *"2 of 3 starts of 2 ranks were right"* ]]
}

@test "weights that differ in one byte" {
  instead_of ddlrun '$real "$@" || exit' \
    '[ "${PWD##*/}" != host ] || printf x | dd of=export/model.safetensors bs=1 seek=5000 conv=notrunc status=none'
  several_ranks same-weights
  refused "graph: not all have the same weights"
}

@test "a death that is not told" {
  instead_of ddlrun '$real "$@"' 'exit 0'
  several_ranks killed
  refused "killed: exit status 0 instead of 137"
}

@test "a death of which the rank is not named" {
  instead_of ddlrun 'exec $real "$@" 2> /dev/null'
  several_ranks killed
  refused "killed: 0 lines .*signal 9 .* instead of 1"
}

@test "a job that does not end when a rank has died" {
  instead_of ddlrun '$real "$@"' 'exec sleep 1000'
  several_ranks killed
  refused "killed: has not ended within 30 s"
}

@test "a process that is left behind" {
  # What a rank leaves ddlrun ends; this is ddlrun's.
  instead_of ddlrun '$real "$@"' 'code=$?' 'RANK=1 setsid sleep 1000 < /dev/null > /dev/null 2>&1 &' 'exit $code'
  several_ranks starts 2 1
  refused "start-1: left processes: [0-9]"
  # What is killed may be there for a moment.
  for ((tries = 0; tries < 50; tries++)); do left_here || break; sleep 0.1; done
  run ! left_here
}

@test "a training that begins anew" {
  instead_of ddltraind 'for option; do shift; case $option in --model_dir=*) ;; *) set -- "$@" "$option" ;; esac; done' 'exec $real "$@"'
  several_ranks resumes
  refused "by-1: 0 lines 'resumed from step 10,' instead of 1"
  refused "by-4: no checkpoint at its end"
}

# Computes on the processor and says what a GPU's rank says, but for what `without` names.
claim_a_gpu() {
  instead_of ddltraind 'for option; do
  shift
  case $option in
    --graph=*) graph=${option#*=} ;;
    --comm=*) comm=${option#*=} ;;
    --backend=cuda | --reduce_precision=16bit) ;;
    *) set -- "$@" "$option" ;;
  esac
done
say() { [ "$RANK" != 0 ] || [ "$without" = "$1" ] || echo "info: $2" >&2; }
if [ "$WORLD_SIZE" -gt 1 ]; then
  say sharing "$WORLD_SIZE ranks share each GPU: each plans with 1/$WORLD_SIZE of what is free, 1.00 GB"
  [ "$comm" != nccl ] || say nccl "gradients: NCCL 2.30.7 beside shared memory"
fi
[ "$graph" != on ] || say graph "training steps run as one graph each"
[ "$NCCL_MULTI_RANK_GPU_ENABLE $NCCL_MAX_CTAS" = "1 4" ] || exit 78
exec $real "$@" --backend=cpu --threads=1'
}

@test "on a GPU: NCCL, graphs and parts of the memory are asked for and looked for" {
  claim_a_gpu
  export backend=cuda without=''
  for check in "trainings 2" same-weights killed stopped leaves-early resumes "starts 4 1"; do
    several_ranks $check
    [ "$status" -eq 0 ]
  done
}

@test "on a GPU: sums that are not NCCL's, no graph, ranks that plan with all of the memory" {
  claim_a_gpu
  export backend=cuda without
  without=nccl several_ranks killed
  refused "killed: 0 lines 'info: gradients: NCCL ' instead of 1"
  without=graph several_ranks resumes
  refused "two: 0 lines 'info: training steps run as one graph each' instead of 1"
  without=sharing several_ranks starts 2 1
  refused "start-1: 0 lines 'info: 2 ranks share each GPU: .*' instead of 1"
}

@test "misuse is 64" {
  several_ranks
  [ "$status" -eq 64 ]
  several_ranks starts 2
  [ "$status" -eq 64 ]
  run -64 "$BATS_TEST_DIRNAME/../../tools/several-ranks" --bin bin killed
  [[ $output == *"--data DIR says where the images are"* ]]
  run -64 "$BATS_TEST_DIRNAME/../../tools/several-ranks" --bin
  [[ $output == *"--bin needs a value"* ]]
}
