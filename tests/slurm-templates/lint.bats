#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Rules of the job scripts that people copy. tests/cluster runs them; shellcheck reads them with all other scripts.

setup() {
  cd "$BATS_TEST_DIRNAME/../../slurm-templates" || exit 1
}

@test "from one node to many changes the -N line and nothing else" {
  run diff single-node.sbatch multi-node.sbatch
  [ "${#lines[@]}" -eq 4 ]
  [ "${lines[1]}" = "< #SBATCH -N1" ]
  [ "${lines[3]}" = "> #SBATCH -N4" ]
}

@test "Bede's benchmark differs from size to size in its options of sbatch and its first comment alone" {
  for gpus in 1 16 32; do
    run diff bede-resnet50-4.sbatch "bede-resnet50-$gpus.sbatch"
    [ "$(grep '^[<>]' <<< "$output" | grep -cvE "^[<>] (#SBATCH |# The ResNet-50 benchmark )")" -eq 0 ]
    nodes=$(sed -n 's/^#SBATCH -N//p' "bede-resnet50-$gpus.sbatch")
    per_node=$(sed -n 's/^#SBATCH --gres=gpu://p' "bede-resnet50-$gpus.sbatch")
    [ $((nodes * per_node)) -eq "$gpus" ]
  done
}

@test "every template starts a login shell, so that module is there" {
  for template in *.sbatch *.sh; do
    head -n 1 "$template" | grep -qxF '#!/bin/bash -l' || { echo "$template"; return 1; }
  done
}

@test "no option of sbatch comes after the first command, where sbatch does not read it" {
  for template in *.sbatch; do
    awk '/^#SBATCH/ { if (command) late = 1 } !/^(#|$)/ { command = 1 } END { exit late }' "$template" ||
      { echo "$template"; return 1; }
  done
}

@test "every template asks for nodes, GPUs, a time limit, names its log, and has Bede's lines ready" {
  for template in *.sbatch; do
    for option in '-N[0-9]' '--gres=gpu:[14]$' '--time=' '--output=%x-%[jA]'; do
      grep -q -e "^#SBATCH $option" "$template" || { echo "$template lacks $option"; return 1; }
    done
    for option in '--account=bd' '--partition=gpu'; do
      grep -q -e "^##SBATCH $option" "$template" || { echo "$template lacks $option"; return 1; }
    done
  done
}

@test "every template is installed" {
  for template in *.sbatch *.sh; do
    grep -qw "$template" CMakeLists.txt || { echo "$template"; return 1; }
  done
}
