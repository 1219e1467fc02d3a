#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# bede-mpirun: Open MPI's mpirun with ranks and threads as the machine is made.

load common

ac922="$BATS_TEST_DIRNAME/../../fixtures/hwloc/ac922_16c_4v100.xml"
# What a rank says of itself: its number, its CPUs, its threads.
say='echo "$OMPI_COMM_WORLD_RANK $(sed -n "s/Cpus_allowed_list:\t//p" /proc/self/status) $OMP_NUM_THREADS"'

run_bede() {
  run_separate env PATH="${search_path:-$PATH}" "$DDLRUN_BUILD/bin/bede-mpirun" "$@"
}

# refused CODE TEXT ARGUMENTS...: one line, and nothing started.
refused() {
  local code=$1 text=$2
  shift 2
  run_bede "$@"
  echo "$status: $messages"
  [ "$status" -eq "$code" ]
  [ -z "$output" ]
  [[ $messages == "bede-mpirun: [ERROR DDL-20-$code] "*"$text"* ]]
  [ "$(wc -l <<< "$messages")" -eq 1 ]
}

# A node of two cores or more whose cores have one hardware thread each, all of them ours.
require_plain_cores() {
  require_mpirun
  local cores
  cores=$(lscpu -p=core,socket | grep -v '^#' | sort -u | wc -l)
  if [ "$(nproc)" -lt 2 ] || [ "$(nproc)" -ne "$cores" ]; then skip "needs two cores of one hardware thread each"; fi
}

@test "a rank per core is what it starts by itself, each on its own" {
  require_plain_cores
  expect=0 run_bede sh -c "$say"
  [ "${#lines[@]}" -eq "$(nproc)" ]
  [ "$(cut -d' ' -f2 <<< "$output" | sort -u | wc -l)" -eq "$(nproc)" ]
  [ "$(cut -d' ' -f3 <<< "$output" | sort -u)" = 1 ]
  [[ $messages == "bede-mpirun: 1ppc:1tpt: $(nproc) ranks unless an option of mpirun says otherwise, 1 thread each"*"+ /usr/bin/env "*"_MCA_"*"/mpirun "* ]]
}

@test "a rank per node has all cores" {
  require_plain_cores
  run_bede --bede-par 1ppn:1tpc sh -c "$say"
  [ "$output" = "0 $(sed -n 's/Cpus_allowed_list:\t//p' /proc/self/status) $(nproc)" ]
  run_bede --bede-par=1ppn:none sh -c 'echo "$OMP_NUM_THREADS"'
  [ "$output" = 1 ]
}

@test "a rank per hardware thread" {
  require_plain_cores
  run_bede --bede-par 1ppt sh -c "$say"
  [ "${#lines[@]}" -eq "$(nproc)" ]
  [ "$(cut -d' ' -f2 <<< "$output" | sort -u | wc -l)" -eq "$(nproc)" ]
}

@test "a rank per GPU has its share of the cores" {
  require_plain_cores
  # Slurm granted two GPUs, which hwloc does not see here.
  SLURM_JOB_ID=7 SLURM_JOB_NODELIST="$(hostname)" SLURM_JOB_NUM_NODES=1 SLURM_GPUS_PER_NODE=2 \
    run_bede --bede-par 1ppg:1tpc sh -c "$say"
  [ "$status" -eq 0 ]
  [ "${#lines[@]}" -eq 2 ]
  [ "$(cut -d' ' -f2 <<< "$output" | sort -u | wc -l)" -eq 2 ]
  [ "$(cut -d' ' -f3 <<< "$output" | sort -u)" -eq $(($(nproc) / 2)) ]
  [[ $messages == "bede-mpirun: [WARN DDL-21-1] $(hostname): 2 GPUs granted, but hwloc sees 0; "* ]]
}

@test "mpirun takes what the user says over what bede-mpirun sets" {
  require_plain_cores
  run_bede -np 1 echo x
  [ "$output" = x ]
  for par in 1ppn 1ppc 1ppt; do
    run_bede --bede-par "$par" -n 6 --oversubscribe echo x
    [ "${#lines[@]}" -eq 6 ]
  done
  run_bede --bede-par 1ppn -n 2 echo x
  [ "$status" -ne 0 ]
  run_bede -npernode 1 echo x
  [ "$output" = x ]
  run_bede -n 1 --bind-to none sh -c "$say"
  [ "$output" = "0 $(sed -n 's/Cpus_allowed_list:\t//p' /proc/self/status) 1" ]
  run_bede -n 1 -x OMP_NUM_THREADS=5 sh -c 'echo "$OMP_NUM_THREADS"'
  [ "$output" = 5 ]
  # Open MPI 5.0.7 of Debian 13 crashes over any command with a colon.
  if OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun -n 1 true : -n 1 true; then
    run_bede -n 1 echo one : -n 1 echo two
    [ "$(sort <<< "$output")" = $'one\ntwo' ]
  fi
  printf '%s slots=1\n' "$(hostname)" > my.hosts
  run_bede --hostfile my.hosts echo x
  [ "$output" = x ]
  OMP_NUM_THREADS=3 run_bede -n 1 sh -c 'echo "$OMP_NUM_THREADS"'
  [ "$output" = 3 ]
}

@test "a dry run shows the command and its files and starts nothing" {
  require_mpirun
  SLURMD_NODENAME=gpu025 SLURM_JOB_ID=7 SLURM_JOB_NODELIST='gpu[025-026]' SLURM_JOB_NUM_NODES=2 SLURM_GPUS_PER_NODE=4 SLURM_GPUS_ON_NODE=4 HWLOC_XMLFILE=$ac922 \
    run_bede --bede-dry-run --bede-par 1ppg:1tpc -x A=1 touch started
  [ "$status" -eq 0 ]
  [[ ${lines[0]} == "bede-mpirun: 1ppg:1tpc: 8 ranks unless an option of mpirun says otherwise, 8 threads each" ]]
  [[ ${lines[1]} == "+ /usr/bin/env "*" 'SLURM_NODELIST=gpu[025-026]' 'SLURM_TASKS_PER_NODE=4(x2)' "*" -x A=1 touch started" ]]
  if mpirun_is_prrte; then
    [[ ${lines[1]} == *" PRTE_MCA_hwloc_default_binding_policy=:overload-allowed "*" -x OMP_NUM_THREADS=8 --map-by rankfile:FILE="*"/RANKFILE -x A=1 "* ]]
  else
    [[ ${lines[1]} == *" OMPI_MCA_orte_rankfile="*"/RANKFILE "*" -x OMP_NUM_THREADS=8 -x A=1 "* ]]
  fi
  [[ $output == *$'\ngpu026 slots=4\n'*$'\nrank 7=gpu026     slot=1:8-15' ]]
  [ ! -e started ]
}

@test "mpirun maps an AC922 as planned" {
  require_mpirun
  for shares in 1ppn:1 1ppc:32 1ppt:128; do
    HWLOC_XMLFILE=$ac922 OMPI_MCA_hwloc_base_topo_file=$ac922 \
      run_bede --bede-par "${shares%:*}" --do-not-launch --display-map true
    [[ $output$messages == *"Num procs: ${shares#*:}"$'\n'* ]]
  done
  HWLOC_XMLFILE=$ac922 run_bede --bede-par 1ppg --display-map true
  if mpirun_is_prrte; then
    local rank=0 cores
    for cores in 0][core:0-7 0][core:8-15 1][core:16-23 1][core:24-31; do
      [[ $output$messages == *"Process rank: $rank Bound: package[$cores]"* ]]
      rank=$((rank + 1))
    done
    for shares in 'c core 31 1][core:31' 't hwthread 127 1][hwt:127'; do
      read -r unit what last where <<< "$shares"
      HWLOC_XMLFILE=$ac922 run_bede --bede-par "1pp$unit" --do-not-launch --display-map true
      [[ $output$messages == *"Mapping policy: BY${what^^}:"*"Binding policy: ${what^^}"$'\n'*"Process rank: $last Bound: package[$where]"* ]]
    done
    return
  fi
  [[ $output == *"rank: 0 Bound: socket 0[core 0[hwt 0-3]], socket 0[core 1[hwt 0-3]],"*"rank: 1 Bound: socket 0[core 8["* ]]
  [[ $output == *"rank: 2 Bound: socket 1[core 16["*"rank: 3 Bound: socket 1[core 24["*" socket 1[core 31[hwt 0-3]]:"* ]]
}

@test "exit code and messages of a rank that fails" {
  require_mpirun
  expect=3 run_bede -n 2 --oversubscribe sh -c '[ $OMPI_COMM_WORLD_RANK = 1 ] && { echo "no data" >&2; exit 3; }; exec sleep 60'
  [[ $messages == *"no data"* ]]
  [[ ${messages##*$'\n'} == "bede-mpirun: [ERROR DDL-20-1] mpirun ended with exit code 3; the messages above say why" ]]
  expect=137 run_bede -n 1 sh -c 'kill -KILL $$'
}

@test "signals reach the ranks" {
  require_mpirun
  "$DDLRUN_BUILD/bin/bede-mpirun" -n 1 \
    sh -c 'trap "exit 0" USR1; echo > ready; while :; do sleep 0.05; done' > /dev/null 2>&1 3>&- &
  local pid=$!
  wait_for 10 test -e ready
  kill -USR1 "$pid"
  wait "$pid"
}

@test "kill -9 leaves no rank and no directory" {
  require_mpirun
  "$DDLRUN_BUILD/bin/bede-mpirun" -n 1 sh -c 'echo $$ > pid.new; mv pid.new pid; exec sleep 600' > /dev/null 2>&1 3>&- &
  local pid=$!
  wait_for 10 test -e pid
  kill -KILL "$pid"
  wait_for 10 have_ended $(cat pid)
  wait_for 10 no_run_directory
}

@test "a distribution that there is not" {
  refused 64 "--bede-par 1ppx: '1ppx' is none of 1ppn, 1ppg, 1ppc, 1ppt" --bede-par 1ppx true
  refused 64 "'2tpc' is none of 1tpc, 1tpt, none" --bede-par=1ppc:2tpc true
  refused 64 "--bede-par needs a value" --bede-par
}

@test "no program" {
  refused 64 "no program given" --bede-par 1ppc
}

@test "a rank per GPU where there is no GPU" {
  require_mpirun
  SLURMD_NODENAME=n1 SLURM_JOB_ID=7 SLURM_JOB_NODELIST=n1 SLURM_JOB_NUM_NODES=1 SLURM_GPUS_PER_NODE=0 HWLOC_XMLFILE=$ac922 \
    refused 78 "no GPU on n1: ask for GPUs with '#SBATCH --gres=gpu:4'" --bede-par 1ppg true
}

@test "a machine that is not in the job" {
  SLURM_JOB_ID=7 SLURM_JOB_NODELIST='n[1-2]' SLURM_JOB_NUM_NODES=2 \
    refused 78 "this machine is not in the job (SLURM_JOB_NODELIST=n[1-2])" true
}

@test "no mpirun" {
  search_path=/nonexistent refused 69 "mpirun is not in PATH" --bede-par 1ppn true
}

@test "an mpirun that is not Open MPI's" {
  printf '#!/bin/sh\necho "HYDRA build details:"\necho "    Version:  4.2.1"\n' > mpirun
  chmod +x mpirun
  search_path="$PWD:$PATH" refused 69 "$PWD/mpirun is of MPICH (Hydra 4.2.1), not of Open MPI (--launcher=hydra starts ranks by it): load Open MPI ('module load openmpi'), or name its mpirun in the site file" --bede-par 1ppn true
}

@test "--help and --version are about bede-mpirun" {
  run_bede --help
  [[ $output == "usage: bede-mpirun "* ]]
  run_bede --version
  [[ $output == "bede-mpirun "[0-9]* ]]
}
