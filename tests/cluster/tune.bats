#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# ddlrun --tune on a real Slurm writes a site file that the next run takes: of a faster network; and, the long form, where one link of a
# network is slow and ranks are in an order that sends every sum over it, of both.

# shellcheck disable=SC2016 # the shells of the ranks expand, not ours
# shellcheck disable=SC2030,SC2031,SC2154 # run and common.bash set them

load common

setup_file() {
  start_cluster 3 0 4
  has_cluster || return 0
  add_fabric 3
}

teardown_file() { stop_cluster; }

setup() { empty_home; }

# shape NODE INTERFACE RATE: what the node sends there.
shape() { cluster at "$1" tc qdisc add dev "$2" root tbf rate "$3" burst 32kb latency 50ms; }

# eth0 of every node has 100 Mbit/s, so that it matters which ranks are neighbours; eth1 has what this machine can do, but n3's link of
# it has 20 Mbit/s, both ways.
shape_links() {
  local node
  for node in n1 n2 n3; do shape "$node" eth0 100mbit || return 1; done
  shape n3 eth1 20mbit
  cluster in tc qdisc add dev f3 root tbf rate 20mbit burst 32kb latency 50ms
}

require_benchmark() {
  run "$cluster_dir/opt/bin/ddlbench" allreduce -b 8 -e 8 -n 1 -w 0 --backend=reference
  [ "$status" -eq 0 ] || skip "this build has no MPI"
}

@test "--tune takes the faster of two networks into a site file, and the next run takes that" {
  require_benchmark
  { shape n1 eth0 20mbit && shape n2 eth0 20mbit; } || skip "the kernel shapes no links"
  printf '%s\n' '# The file of this cluster.' 'launcher: srun' \
    'environment: {UCX_NET_DEVICES: eth0, OMPI_MCA_btl_tcp_if_include: eth0, NCCL_DEBUG: WARN}' > "$work/site.yaml"
  script tune.sh 'ddlrun --site ./site.yaml --ranks-per-node 1 --tune=tuned.yaml'
  limit=600 batch tune.sh -N2
  echo "$output"
  cat "$work/tuned.yaml"
  [ "$status" -eq 0 ]
  [[ $output == *"network: eth1 is better"* ]]
  [[ $output == *"two nodes have one link: it cannot be compared with others"* ]]
  [[ $output == *"copies in the memory of the hosts, all ranks at once: "*" GB/s in the median, "*" GB/s of rank "[01]" on n"[12]* ]]
  cluster at n1 tc qdisc del dev eth0 root
  cluster at n2 tc qdisc del dev eth0 root
  # The old file with what is better, and its figures.
  grep -qx '# The file of this cluster.' "$work/tuned.yaml"
  grep -qx 'launcher: srun' "$work/tuned.yaml"
  grep -qx '  UCX_NET_DEVICES: "eth1"' "$work/tuned.yaml"
  grep -qx '  NCCL_DEBUG: "WARN"' "$work/tuned.yaml"
  grep -q '^# copies in the memory of the hosts, ' "$work/tuned.yaml"
  grep -qE '^  #   as it is: [0-9.]+ (us|ms|s) \(scatter [0-9.]+ (us|ms|s)\)' "$work/tuned.yaml"
  script second.sh 'ddlrun --site ./tuned.yaml --ranks-per-node 1 sh -c '\''echo "$RANK $UCX_NET_DEVICES"'\'''
  batch second.sh -N2
  [ "$(grep -E '^[01] ' <<< "$output" | sort)" = $'0 eth1\n1 eth1' ]
  # It writes over nothing.
  script again.sh 'ddlrun --site ./site.yaml --tune=tuned.yaml'
  batch again.sh -N2
  [ "$status" -eq 64 ]
  [[ $output == *"tuned.yaml is there already, and --tune writes over no file"* ]]
}

@test "--tune finds the network with a slow link, names the link, and the order that is wrong" {
  [ -n "${DDLRUN_LONG:-}" ] || skip "takes seven minutes: DDLRUN_LONG=1 ctest --test-dir build/release -R tune_cluster"
  require_benchmark
  local node
  shape_links || skip "the kernel shapes no links"
  printf '%s\n' '# The file of this cluster.' 'launcher: srun' 'rank_order: cyclic' \
    'environment: {UCX_NET_DEVICES: eth1, OMPI_MCA_btl_tcp_if_include: eth1, NCCL_DEBUG: WARN}' > "$work/site.yaml"
  script tune.sh 'ddlrun --site ./site.yaml --ranks-per-node 2 --tune=tuned.yaml'
  limit=1500 batch tune.sh -N3
  echo "$output"
  cat "$work/tuned.yaml"
  [ "$status" -eq 0 ]
  [[ $output == *"network: eth0 is better"* ]]
  [[ $output == *"order of ranks: rank_order: auto is better"* ]]
  [[ $output == *"n3 is slow on eth1: with n1 "*", with n2 "*", the fastest pair "* ]]
  [[ $output == *"no pair of nodes is slow on eth0"* ]]
  for node in n1 n2 n3; do cluster at "$node" tc qdisc del dev eth0 root; done
  grep -qx 'rank_order: auto' "$work/tuned.yaml"
  grep -qx '  UCX_NET_DEVICES: "eth0"' "$work/tuned.yaml"
  # A second run takes it.
  script second.sh 'ddlrun --site ./tuned.yaml --ranks-per-node 2 sh -c '\''echo "$RANK $DDLRUN_NODE_RANK $UCX_NET_DEVICES"'\'''
  batch second.sh -N3
  echo "$output"
  [ "$(grep -E '^[0-5] ' <<< "$output" | sort)" = $'0 0 eth0\n1 0 eth0\n2 1 eth0\n3 1 eth0\n4 2 eth0\n5 2 eth0' ]
}

@test "scancel while it measures leaves no rank and no file" {
  require_benchmark
  script tune.sh 'ddlrun --tune'
  hpc sbatch --quiet --output="$work/tune.out" -N3 "$work/tune.sh"
  wait_for 60 grep -q 'trying' "$work/tune.out"
  hpc scancel --user=hpc
  local node
  for node in n1 n2 n3; do wait_for 30 nothing_left_on "$node"; done
  [ ! -e "$work/ddlrun-tuned.yaml" ]
}
