#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Weights that we write are weights that torchvision reads.

load common

@test "a trained ResNet-50 loads into torchvision's model, strictly" {
  /usr/bin/python3 -c 'import torch, torchvision' 2> /dev/null || skip "/usr/bin/python3 has no torch and torchvision"
  run -0 --separate-stderr timeout 60 "$ddltraind" --arch=resnet50 --classes=1000 --image_size=64 --batch_size=2 \
    --iter_unit=batch --num_iter=1 --mode=train --results_dir=run
  run /usr/bin/python3 "$safetensors" resnet50 run/checkpoints/step-0000000001/model.safetensors
  echo "$output"
  [ "$output" = finite ]
}
