#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# As many nodes as the notes of DDL speak of: 64, with four GPUs each.

# shellcheck disable=SC2016 # the ranks' shells expand, not ours
# shellcheck disable=SC2154 # set by bats and common.bash

load common

setup_file() { start_cluster 64 4 8; }
teardown_file() { stop_cluster; }
setup() { empty_home; }

@test "256 ranks on 64 nodes: each one once, four to a node, in order" {
  script job 'ddlrun sh -c "echo rank \$RANK/\$WORLD_SIZE \$(hostname) \$LOCAL_RANK"'
  limit=120 batch job -N64 --gpus-per-node=4
  [ "$status" -eq 0 ]
  local expected rank
  expected=$(for ((rank = 0; rank < 256; rank++)); do echo "$rank/256 n$((rank / 4 + 1)) $((rank % 4))"; done)
  [ "$(sed -n 's/^rank //p' <<< "$output" | sort -n)" = "$expected" ]
}

@test "255 ranks in turn over 64 nodes, the last of which has one less" {
  script job 'ddlrun -n 255 --rank-order=cyclic sh -c "echo rank \$RANK/\$WORLD_SIZE \$(hostname) \$LOCAL_RANK/\$LOCAL_WORLD_SIZE"'
  limit=120 batch job -N64 --gpus-per-node=4
  [ "$status" -eq 0 ]
  local expected rank
  expected=$(for ((rank = 0; rank < 255; rank++)); do
    echo "$rank/255 n$((rank % 64 + 1)) $((rank / 64))/$((rank % 64 == 63 ? 3 : 4))"
  done)
  [ "$(sed -n 's/^rank //p' <<< "$output" | sort -n)" = "$expected" ]
}

@test "one of 256 ranks fails: it is named, the others are ended" {
  script job 'ddlrun sh -c "[ \$RANK -ne 201 ] || exit 3; sleep 1000"'
  limit=120 batch job -N64 --gpus-per-node=4
  [ "$status" -eq 3 ]
  [[ $output == *"rank 201 on n51 "* ]]
  wait_for 20 nothing_left_on n51
  wait_for 20 nothing_left_on n64
}
