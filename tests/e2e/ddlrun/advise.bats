#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# ddlrun --advise: in the environments of real jobs, without a GPU, and quickly.

load common

training=(ddltraind --batch_size=256 --precision=fp16 --num_iter=50 --lr_init=0.256 --lr_warmup_epochs=8 --use_cosine_lr)

# advise_in FILE OPTIONS...: in the batch script that tests/fixtures/slurm-env/FILE has recorded, whose scontrol answers as it did.
advise_in() {
  local recorded="$BATS_TEST_DIRNAME/../../fixtures/slurm-env/$1" variables=() line
  shift
  mkdir -p slurm
  sed -n '/^## scontrol/,$p' "$recorded" | tail -n +2 > slurm/answer
  printf '#!/bin/sh\ncat "%s"\n' "$PWD/slurm/answer" > slurm/scontrol
  chmod +x slurm/scontrol
  while IFS= read -r line; do
    [[ $line != SLURM_CONF=* ]] || continue
    variables+=("$line")
  done < <(sed -n '/^## \(batch script\|salloc\)/,/^## /p' "$recorded" | tr ' ' '\n' | grep -E '^(SLURM|CUDA)[A-Z_0-9]*=')
  run_separate env -i PATH="$PWD/slurm:$PATH" "${variables[@]}" "$ddlrun" "$@" "${training[@]}"
}

# row NODES RANKS GLOBAL_BATCH LEARNING_RATE: the table has such a line.
row() {
  grep -qE "^$1 +$2 +$3 +$4 +[0-9]+ +[01]\.[0-9]+ " <<< "$output" || { echo "no row $*:"; echo "$output$messages"; return 1; }
}

@test "tables for the environments of real jobs" {
  expect=0 advise_in N2-gres-gpu-4.txt --advise
  row 1 4 1024 1.024
  row 2 8 2048 2.048
  row 16 64 16384 16.38
  [[ $output == *'4 GPUs per node, '* ]]
  advise_in N2-gpus-6-uneven.txt --advise
  row 2 6 1536 1.536
  row 2 8 2048 2.048
  advise_in N1-gpus-per-node-2-ntasks-2-cpus-per-task-2.txt --advise
  row 1 2 512 0.512
  row 8 16 4096 4.096
  advise_in n3-gpus-per-task-1.txt --advise
  row 1 3 768 0.768
  row 16 48 12288 12.29
  expect=0 advise_in nonuniform-nodes-n1_n3_n4.txt --advise
  [[ $output == *'<- this job'* ]]
}

@test "links and GPU of a site file" {
  expect=0 advise_in N4-gres-gpu-4-ntasks-per-node-4.txt --site bede --advise
  [[ $output == *'1270 images/s in fp16: V100-SXM2-32GB ('*'bede.yaml)'* ]]
  [[ $output == *'xbus (32 GB/s) inside, 2 adapters of 100 Gbit/s'* ]]
}

@test "in less than 0.2 s of processor time" {
  TIMEFORMAT='%U %S'
  run_time=$({ time "$ddlrun" --advise "${training[@]}" > /dev/null; } 2>&1)
  python3 -c 'import sys; sys.exit(sum(map(float, sys.argv[1].split())) >= 0.2)' "$run_time"
}

@test "behind the plan of a dry run" {
  expect=0 run_ddlrun --dry-run "${training[@]}"
  [[ $output == *'+ '*'Predicted for this training on N nodes'* ]]
  expect=0 run_ddlrun --dry-run ddltraind --arch=resnet101 --batch_size=8
  [[ $output == *'no prediction: --advise knows resnet50 alone, not --arch=resnet101'* ]]
  run_ddlrun --dry-run true
  [[ $output != *'Predicted for'* && $output != *'no prediction'* ]]
}

@test "mistakes" {
  expect=64 run_ddlrun --advise python3 train.py
  [[ $messages == *"--advise knows ddltraind alone, not 'python3': ddlrun --advise ddltraind --batch_size=256 ..."* ]]
  expect=64 run_ddlrun --advise=fast "${training[@]}"
  [[ $messages == *"option --advise: 'fast' is not the images/s of one GPU, a number above 0"* ]]
  expect=64 run_ddlrun --advise ddltraind --batch_size=many
  [[ $messages == *'--advise: ddltraind --batch_size=many must be a number above 0'* ]]
  expect=64 run_ddlrun --advise
  [[ $messages == *'no program given'* ]]
}
