#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A Slurm without the PMIx plug-in and without GPUs.

# shellcheck disable=SC2016 # the ranks' shells expand, not ours
# shellcheck disable=SC2154 # set by bats and common.bash

load common

setup_file() {
  command -v mpirun > /dev/null || skip_all "mpirun is not installed" || return 0
  local plugins
  plugins=$(find /usr/lib -type d -name slurm-wlm | head -n 1)
  [ -n "$plugins" ] || skip_all "Slurm's plug-ins are not found" || return 0
  export plugin_dir
  plugin_dir=$(mktemp -d /var/tmp/ddlrun-plugins.XXXXXX)
  chmod 755 "$plugin_dir"
  ln -s "$plugins"/*.so "$plugin_dir"
  rm -f "$plugin_dir"/mpi_pmix*
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
  expect_status 0
  [ "$(sed -n 's/^rank //p' <<< "$output" | sort)" = $'0 n1 0/1\n1 n2 0/1' ]
  [ "$(grep -c "2 ranks with the mpirun launcher: srun cannot ('srun --mpi=list' knows no pmix: " <<< "$output")" -eq 1 ]
}

@test "--launcher=srun is refused with what to do" {
  sed -i 's/ddlrun /ddlrun --launcher=srun /' job
  batch job -N2
  expect_status 69
  [[ $output == *"[ERROR DDL-20-69] srun cannot start ranks: 'srun --mpi=list' knows no pmix:"*"--pmi=none starts programs that need no MPI"*"use --launcher=mpirun, or ask your admin for Slurm's PMIx plug-in"* ]]
}

@test "without mpirun as well srun starts them, and a line says what does not work" {
  mkdir bin
  for program in srun scontrol sh hostname; do ln -s "/usr/bin/$program" bin; done
  sed -i "2i PATH=$work/bin:$cluster_dir/opt/bin" job
  batch job -N2
  expect_status 0
  [ "$(sed -n 's/^rank //p' <<< "$output" | sort)" = $'0 n1 0/1\n1 n2 0/1' ]
  [[ $output == *"2 ranks with the srun launcher: without PMI ('srun --mpi=list' knows no pmix:"*"MPI programs do not find each other"*"srun --mpi=none "* ]]
}

@test "--pmi=none is srun all the same, --pmi=pmix is refused with what there is" {
  sed -i 's/ddlrun /ddlrun --pmi=none /' job
  batch job -N2
  [ "$(sed -n 's/^rank //p' <<< "$output" | sort)" = $'0 n1 0/1\n1 n2 0/1' ]
  [[ $output == *"inside Slurm, by --pmi=none"* ]]
  sed -i 's/--pmi=none/--pmi=pmix/' job
  batch job -N2
  expect_status 69
  [[ $output == *"[ERROR DDL-20-69] srun cannot start ranks by --pmi=pmix: 'srun --mpi=list' knows no pmix:"*" none"*"choose another --pmi"* ]]
}

@test "ddltraind meets in shared memory on one node; on two it says what it needs, and trains on neither" {
  script job 'ddlrun --pmi=none ddltraind --mode=training_benchmark --backend=cpu --arch=resnet50 --image_size=32 --batch_size=2 --iter_unit=batch --num_iter=2 --warmup_steps=1 --classes=10 --results_dir=results'
  batch job -N1 -n2
  expect_status 0
  [[ $output == *"shared memory, 2 ranks"* ]]
  batch job -N2 --ntasks-per-node=1
  expect_status 69
  [[ $output == *"srun started the 2 ranks with --mpi=none, and ddltraind needs PMIx"*"use ddlrun --launcher=mpirun"* ]]
  [[ $output != *"total_loss"* ]]
}
