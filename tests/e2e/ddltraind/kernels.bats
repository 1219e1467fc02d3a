#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Which of oneDNN's kernels the back end cpu is given.

load common

# oneDNN's plain loops ("ref") are 100 times slower than any other kernel.
@test "no convolution of small images runs in plain loops, whatever the processor knows" {
  "$ddltraind" --version | grep -qw cpu || skip "this build has no oneDNN"
  for size in 32 64; do
    for instructions in ALL AVX SSE41; do
      DNNL_MAX_CPU_ISA=$instructions DNNL_VERBOSE=1 timeout 200 "$ddltraind" --backend=cpu --mode=training_benchmark \
        --image_size=$size --batch_size=2 --iter_unit=batch --num_iter=1 --warmup_steps=0 > out
      grep -q 'exec,cpu,convolution,' out
      run ! grep -E 'exec,cpu,convolution,ref' out
    done
  done
}
