#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# ddlrun where Slurm knows the network: two switches, whose nodes are not in the order of their names.

# shellcheck disable=SC2016 # the ranks' shells expand, not ours
# shellcheck disable=SC2154 # set by bats and common.bash

load common

# From 25.05 on a partition may have a topology of its own, here blocks of n1, n4 and n2, n3.
has_topologies_of_partitions() { [ "$(slurmctld -V | sed 's/.* //; s/\.//; s/\..*//')" -ge 2505 ]; }

setup_file() {
  export CLUSTER_SLURM_CONF=TopologyPlugin=topology/tree
  export CLUSTER_TOPOLOGY=$'SwitchName=s1 Nodes=n1,n3\nSwitchName=s2 Nodes=n2,n4\nSwitchName=top Switches=s1,s2'
  if command -v slurmctld > /dev/null && has_topologies_of_partitions; then
    CLUSTER_SLURM_CONF='PartitionName=gpu Nodes=ALL MaxTime=INFINITE State=UP Topology=racks'
    CLUSTER_TOPOLOGY='---
- topology: switches
  cluster_default: true
  tree:
    switches:
      - {switch: s1, nodes: "n1,n3"}
      - {switch: s2, nodes: "n2,n4"}
      - {switch: top, children: "s1,s2"}
- topology: racks
  cluster_default: false
  block:
    block_sizes: [2, 4]
    blocks:
      - {block: b1, nodes: "n1,n4"}
      - {block: b2, nodes: "n2,n3"}
'
  fi
  start_cluster 4 2 4
}
teardown_file() { stop_cluster; }
setup() {
  empty_home
  script job 'ddlrun "$@" sh -c "echo rank \$RANK \$(hostname) \$DDLRUN_HOST \$LOCAL_RANK/\$LOCAL_WORLD_SIZE \$MASTER_ADDR"'
}

# Who ran where, in order: rank, host name of the node, host of the plan, local rank, MASTER_ADDR.
ranks() { sed -n 's/^rank //p' <<< "$output" | sort -n; }

# on NODE...: the lines of two ranks on each.
on() {
  local node rank=0
  for node in "$@"; do
    echo "$rank $node $node 0/2 $1"
    echo "$((rank + 1)) $node $node 1/2 $1"
    rank=$((rank + 2))
  done
}

@test "neighbours share a switch, by srun and by mpirun" {
  local options
  for options in '--launcher=srun --pmi=none' --launcher=mpirun; do
    sed -i "s/ddlrun .*sh -c/ddlrun $options sh -c/" job
    batch job -N4 --gres=gpu:2
    expect_status 0
    [ "$(ranks)" = "$(on n1 n3 n2 n4)" ]
  done
}

@test "the node of the batch script and its neighbours are in front, the last ones are left out" {
  local options
  for options in '-n 4' '--spare-nodes 1 --max-restarts 1 --pmi=none'; do
    sed -i "s/ddlrun .*sh -c/ddlrun $options sh -c/" job
    batch job --nodelist=n2,n3,n4 --gres=gpu:2
    expect_status 0
    [ "$(ranks)" = "$(on n2 n4)" ]
  done
}

@test "--rank-order=node is Slurm's order, -H the user's, cyclic deals over the switches" {
  cp job plain
  sed -i 's/ddlrun /ddlrun --rank-order=node /' job
  batch job -N4 --gres=gpu:2
  echo "$output"
  [ "$(ranks)" = "$(on n1 n2 n3 n4)" ]
  sed 's/ddlrun /ddlrun -H n1,n4,n3,n2 /' plain > job
  batch job -N4 --gres=gpu:2
  echo "$output"
  [ "$(ranks)" = "$(on n1 n4 n3 n2)" ]
  sed 's/ddlrun /ddlrun --rank-order=cyclic /' plain > job
  batch job -N4 --gres=gpu:2
  echo "$output"
  [ "$(ranks | cut -d' ' -f1,2 | tr '\n' ' ')" = "0 n1 1 n3 2 n2 3 n4 4 n1 5 n3 6 n2 7 n4 " ]
}

@test "--dry-run shows the switches, also from the shell of salloc" {
  run hpc salloc -Q -N4 --gres=gpu:2 ddlrun --dry-run
  expect_status 0
  [ "$(head -n 10 <<< "$output" | awk '{ print $1, $2, $3, $4 }' | tail -n 9)" = "rank host switch local
0 n1 s1 0
1 n1 s1 1
2 n3 s1 0
3 n3 s1 1
4 n2 s2 0
5 n2 s2 1
6 n4 s2 0
7 n4 s2 1" ]
  run hpc salloc -Q -N2 --gres=gpu:2 ddlrun --dry-run=json
  echo "$output"
  [[ $output == *'"switch": "s1"'* ]]
  run hpc salloc -Q -N4 --gres=gpu:2 ddlrun --dry-run --rank-order=node
  echo "$output"
  [[ $output != *switch* ]]
}

@test "the blocks of a partition, with --rank-order=topology or segments" {
  has_topologies_of_partitions || skip "Slurm before 25.05 has one topology"
  sed -i 's/ddlrun /ddlrun --launcher=srun --pmi=none /' job
  batch job -pgpu -N4 --gres=gpu:2
  echo "$output"
  [ "$(ranks)" = "$(on n1 n3 n2 n4)" ] # by the switches of the cluster
  batch job -pgpu -N4 --gres=gpu:2 --segment=2
  echo "$output"
  [ "$(ranks)" = "$(on n1 n4 n2 n3)" ]
  sed -i 's/ddlrun /ddlrun --rank-order=topology /' job
  batch job -pgpu -N4 --gres=gpu:2
  echo "$output"
  [ "$(ranks)" = "$(on n1 n4 n2 n3)" ]
  run hpc salloc -Q -pgpu -N4 --segment=2 --gres=gpu:2 ddlrun --dry-run --rank-order=node
  echo "$output"
  [[ $output == *"[WARN DDL-21-9] SLURM_JOB_SEGMENT_SIZE=2, but the segment of ranks 0 to 3 is on several blocks: b1 (n1) and b2 (n2)"* ]]
}
