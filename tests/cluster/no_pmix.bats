#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A Slurm without the PMIx plug-in and without GPUs.

# shellcheck disable=SC2016 # the ranks' shells expand, not ours
# shellcheck disable=SC2154 # set by bats and common.bash

load common

setup_file() {
  command -v mpirun > /dev/null || skip "mpirun is not installed"
  local plugins
  plugins=$(find /usr/lib -type d -name slurm-wlm | head -n 1)
  [ -n "$plugins" ] || skip "Slurm's plug-ins are not found"
  export plugin_dir
  plugin_dir=$(mktemp -d /var/tmp/ddlrun-plugins.XXXXXX)
  chmod 755 "$plugin_dir"
  ln -s "$plugins"/*.so "$plugin_dir"
  rm "$plugin_dir"/mpi_pmix*
  CLUSTER_SLURM_CONF="PluginDir=$plugin_dir" start_cluster 2 0 4
}
teardown_file() {
  stop_cluster
  rm -rf "${plugin_dir:-}"
}
setup() {
  empty_home
  script job 'ddlrun sh -c "echo rank \$RANK \$(hostname) \$LOCAL_RANK/\$LOCAL_WORLD_SIZE"'
}

@test "mpirun starts the ranks, one line says why; a cluster without GPUs has a rank per node" {
  batch job -N2
  echo "$output"
  [ "$status" -eq 0 ]
  [ "$(sed -n 's/^rank //p' <<< "$output" | sort)" = $'0 n1 0/1\n1 n2 0/1' ]
  [ "$(grep -c "2 ranks with the mpirun launcher: srun cannot ('srun --mpi=list' knows no pmix: " <<< "$output")" -eq 1 ]
}

@test "--launcher=srun is refused with what to do" {
  sed -i 's/ddlrun /ddlrun --launcher=srun /' job
  batch job -N2
  echo "$output"
  [ "$status" -eq 69 ]
  [[ $output == *"[ERROR DDL-20-69] srun cannot start ranks: 'srun --mpi=list' knows no pmix:"*"use --launcher=mpirun, or ask your admin for Slurm's PMIx plug-in"* ]]
}

@test "without mpirun as well nothing is left" {
  mkdir bin
  for program in srun scontrol sh hostname; do ln -s "/usr/bin/$program" bin; done
  sed -i "2i PATH=$work/bin:$cluster_dir/opt/bin" job
  batch job -N2
  echo "$output"
  [ "$status" -eq 69 ]
  [[ $output == *"srun cannot ('srun --mpi=list' knows no pmix"*"need mpirun, which is not in PATH: load Open MPI"* ]]
}
