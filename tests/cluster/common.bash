# SPDX-License-Identifier: Apache-2.0
# What the tests on a real Slurm share. Every test file has a cluster of its own, on which ddlrun is installed.

bats_require_minimum_version 1.5.0
load ../wait_for
load ../module_systems

cluster_tests=$(dirname "${BASH_SOURCE[0]}")

# In setup_file, where bats before 1.9 takes `skip` for a failure: skip_all REASON || return 0. Each test's setup calls empty_home,
# which then skips it.
skip_all() {
  export skip_all_reason=$1
  return 1
}

# In setup_file: [part=FOLDER] start_cluster [NODES [GPUS [CPUS]]], with all of the build or that directory of it; what needs the cluster stands behind has_cluster || return 0.
start_cluster() {
  [ "$(id -u)" -eq 0 ] || skip_all "a cluster of namespaces needs root" || return 0
  command -v slurmctld > /dev/null || skip_all "Slurm is not installed" || return 0
  unshare -m -n -u -i -p -f true 2> /dev/null || skip_all "this machine allows no namespaces" || return 0
  export cluster_dir build=${DDLRUN_BUILD:?names the build directory, as in DDLRUN_BUILD=$PWD/build/release bats tests/cluster}
  cluster_dir=$(mktemp -d -u /tmp/ddlrun-cluster.XXXXXX)
  # A checkout below /tmp would be hidden by the nodes' own.
  CLUSTER_VISIBLE=$(realpath "$cluster_tests/../..") "$cluster_tests/cluster" "$cluster_dir" up "$@" || return 1
  cmake --install "$build/${part:-}" --prefix "$cluster_dir/opt" > "$cluster_dir/log/install.log"
  chmod -R a+rX "$cluster_dir/opt"
  # A job of a test that failed must not make the others wait.
  export work=$cluster_dir/home/hpc
}

has_cluster() { [ -n "${cluster_dir:-}" ]; }

# In setup_file, behind start_cluster: add_fabric NODES
# A second network, eth1 on every node: the fabric of the job beside the network of Slurm.
add_fabric() {
  cluster in ip link add br1 type bridge
  cluster in ip link set br1 up
  local i
  for ((i = 1; i <= $1; i++)); do
    cluster in ip link add "f$i" type veth peer name eth1 netns "n$i"
    cluster in ip link set "f$i" master br1 up
    cluster in ip -n "n$i" addr add "10.78.1.$i/16" dev eth1
    cluster in ip -n "n$i" link set eth1 up
  done
}

# In teardown_file.
stop_cluster() {
  ! has_cluster || "$cluster_tests/cluster" "$cluster_dir" down
}

# cluster ACTION...: see the program of that name. Nothing may hang.
cluster() { timeout "${limit:-60}" "$cluster_tests/cluster" "$cluster_dir" "$@"; }

# hpc COMMAND...: as a user on the login node, in a home of its own for each test.
hpc() { cluster as hpc env PATH="$cluster_dir/opt/bin:/usr/bin:/bin" LC_ALL=C "$@"; }

# In setup_file, behind start_cluster.
# `module` in every login shell of the user, as the profile of a cluster has it.
start_modules() {
  local system
  for system in environment-modules lmod; do
    module_start "$system" > "$work/.bash_profile"
    [ ! -s "$work/.bash_profile" ] || break
  done
  [ -s "$work/.bash_profile" ] || skip_all "neither Environment Modules nor Lmod is here: tools/bootstrap check gets them" || return 0
  echo "module use '$cluster_dir/opt/share/modulefiles'" >> "$work/.bash_profile"
}

# In setup: an empty home.
empty_home() {
  [ -z "${skip_all_reason:-}" ] || skip "$skip_all_reason"
  cluster as hpc scancel --user=hpc
  rm -rf "${work:?}"/*
  cd "$work" || return 1
}

# script NAME LINE...: a batch script in the user's home.
script() {
  local name=$1
  shift
  printf '%s\n' '#!/bin/bash' "$@" > "$work/$name"
  chmod 755 "$work/$name"
}

# batch SCRIPT [SBATCH OPTION...]: submits, waits for the end; $status is the script's, $output what it printed. (sbatch --wait
# looks only every few seconds.)
batch() {
  local name=$1 id
  shift
  rm -f "$work/$name.out"
  run hpc sbatch --parsable --open-mode=append --output="$work/$name.out" "$@" "$work/$name"
  [ "$status" -eq 0 ] || return 0
  id=$output
  wait_for "${limit:-60}" job_has_ended "$id" || cluster as hpc scancel "$id"
  status=$(hpc scontrol show job "$id" | sed -n 's/.* ExitCode=\([0-9]*\):.*/\1/p' | sort -n | tail -n 1)
  output=$(cat "$work/$name.out" 2> /dev/null || echo "no output")
}

job_has_ended() { ! hpc scontrol show job "$1" | grep -qE 'JobState=(PENDING|RUNNING|COMPLETING|CONFIGURING|SUSPENDED)'; }

# Processes of the user on a node.
left_on() { cluster at "$1" ps -u hpc -o pid=,args=; }

nothing_left_on() { [ -z "$(left_on "$1")" ]; }
