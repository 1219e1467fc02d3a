#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Configurations of Slurm as sites have them, times ordinary jobs: every rank is on the node of the plan and knows who it is.
# All of it: DDLRUN_LONG=1 (tools/platform testing sh -c 'DDLRUN_LONG=1 ctest ...' for another Slurm); else the short form, of CI.

# shellcheck disable=SC2016 # the ranks' shells expand, not ours
# shellcheck disable=SC2154 # set by bats and common.bash

load common

# name | how it is submitted | the node of each rank, by its number in the plan or by name, or how many ranks | options of Slurm | of ddlrun
jobs='
batch     | sbatch | 00112233    | -N4 --gres=gpu:2                              |
shell     | salloc | 001122      | -N3 --ntasks-per-node=2                       |
pty       | srun   | 0011        | -N2 --gres=gpu:2                              |
no-export | sbatch | 0123        | -N4 --gres=gpu:1 --export=NONE                |
memory    | sbatch | 0011        | -N2 --ntasks-per-node=2 --mem-per-cpu=50      |
nodelist  | sbatch | n2 n2 n4 n4 | --nodelist=n4,n2 --gres=gpu:2                 |
hosts     | sbatch | n3 n1 n4 n2 | -N4 --gres=gpu:1                              | -H n3,n1,n4,n2
per-task  | sbatch | 4 ranks     | -n4 --gpus-per-task=1                         |
one-node  | sbatch | 00          | -N1 -n2 --gpus-per-task=1                     |
uneven    | sbatch | 3 ranks     | -N2 --gpus=3                                  |
tasks     | sbatch | 3 ranks     | -N2 -n3                                       |
cyclic    | sbatch | 0101        | -N2 --ntasks-per-node=2 --distribution=cyclic | --rank-order=cyclic
array     | sbatch | 01          | -N2 --gres=gpu:1 --array=0-1                  |
'

# What cannot be: a pattern of "VERSION CONFIGURATION JOB LAUNCHER" | the words of ddlrun, or of Slurm where it takes no such job.
# By Slurm 22.05 no srun may start on the second node alone where --gpus has one GPU on the first and two there; with
# CR_ONE_TASK_PER_CORE it may give 3 GPUs to 4 tasks of one each.
refusals='
* least-loaded tasks *               | Requested node configuration is not available
* two-topologies nodelist *          | Requested node configuration is not available
* exclusive pty mpirun               | SLURM_GPUS_ON_NODE=4 on this node, but the plan counts on 2 here
* exclusive shell *                  | because the job asks for as many tasks
* exclusive memory *                 | because the job asks for as many tasks
* exclusive tasks *                  | because the job asks for as many tasks
* exclusive one-node *               | because the job asks for as many tasks
* exclusive cyclic *                 | because the job asks for as many tasks
22.05.* one-task-per-core per-task * | 2 ranks for 1 GPU
22.05.* * per-task mpirun            | mpirun ended by itself, with exit code 1, before any rank had started
22.05.* * uneven mpirun              | mpirun ended by itself, with exit code 1, before any rank had started
'

each_line() { sed -nE 's/^ +| +$//; s/ *\| */|/g; /./p' <<< "$1"; }

# job NAME [OPTION OF DDLRUN...], in a job: plans, and starts the ranks by each launcher. rank FILE: writes who it is, one line of JSON.
write_scripts() {
  sed "s|@BIN@|$cluster_dir/opt/bin|" > job << 'END'
#!/bin/bash
[ "${SLURM_PROCID:-0}" -eq 0 ] || exit 0 # of srun --pty: it has no terminal
PATH=@BIN@:/usr/bin:/bin
name=$1${SLURM_ARRAY_TASK_ID:+-$SLURM_ARRAY_TASK_ID}
shift
scontrol show job --details "$SLURM_JOB_ID" | grep ' CPU_IDs=' > $name.job
for launcher in srun mpirun; do
  launch=$name.$launcher options=(--launcher=$launcher "$@")
  [ $launcher = mpirun ] || srun --mpi=list 2>&1 | grep -q pmix || options+=(--pmi=none)
  ddlrun --dry-run=json "${options[@]}" true > $launch.plan 2> $launch.err
  timeout --foreground -k 5 60 ddlrun "${options[@]}" ./rank $launch.rank >> $launch.err 2>&1 < /dev/null
  echo $? > $launch.status
done
END
  sed "s|@MPI@|${mpi_program:-true}|" > rank << 'END'
#!/bin/bash
read -r host < /proc/sys/kernel/hostname
[ "$DDLRUN_PMI" = none ] || mpi=$(@MPI@ | sed -n 's/^mpi \([^ ]*\) .*/\1/p')
exec jq -nc --arg host "$host" --arg mpi "$mpi" '{host: $host, mpi: (if $mpi == "" then null else $mpi end)} + env' > "$1.$host.$$"
END
  chmod 755 job rank
}

submit_jobs() {
  local name how wanted slurm ddlrun number=0 partitions
  read -ra partitions <<< "${partitions_of_jobs:-main}"
  while IFS='|' read -r name how wanted slurm ddlrun; do
    slurm="--partition=${partitions[number++ % ${#partitions[@]}]} $slurm"
    # shellcheck disable=SC2086 # several words each
    case $how in
      sbatch) hpc sbatch --quiet --output="$name.log" $slurm ./job "$name" $ddlrun 2> "$name.submit" || : ;;
      salloc) hpc salloc --quiet $slurm ./job "$name" $ddlrun > "$name.log" 2>&1 3>&- & ;;
      srun) hpc script -qec "srun $slurm --pty ./job $name $ddlrun" /dev/null > "$name.log" 2>&1 3>&- & ;;
    esac < /dev/null
  done < <(each_line "$jobs")
  wait
  wait_for 240 nothing_queued
}

nothing_queued() { [ -z "$(hpc squeue -h)" ]; }

# The words by which this launch may be refused; "" where it may not.
words_of_refusal() { # VERSION CONFIGURATION JOB LAUNCHER
  local pattern words
  while IFS='|' read -r pattern words; do
    # shellcheck disable=SC2053 # a pattern
    [[ "$*" != $pattern ]] || echo "$words"
  done < <(each_line "$refusals")
}

judge() { # CONFIGURATION JOB LAUNCHER WANTED
  local launch=$2.$3 words status found
  words=$(words_of_refusal "$version" "$1" "${2%-[01]}" "$3")
  status=$(cat "$launch.status" 2> /dev/null || echo "unknown")
  if [ "$status" = 0 ]; then
    found=$(jq -s -r -f "$BATS_TEST_DIRNAME/configurations.jq" --slurpfile plan "$launch.plan" \
      --arg nodes "$4" --arg launcher "$3" "$launch".rank.* 2>&1 | head -n 5)
    if [ -z "$found" ]; then right=$((right + 1)); else faults+=("$*: $found"); fi
  elif [ -n "$words" ] && grep -qF "$words" "$launch.err" "$2.submit"; then
    refused=$((refused + 1))
  else
    faults+=("$*: exit code $status: $(tail -n 20 "$launch.err" "$2.job" "$2.log" "$2.submit" 2> /dev/null || :)")
  fi
}

# Runs all jobs on a cluster of this configuration, and judges each of their launches. What the test says on descriptor 3 is a row
# for doc/platforms.md.
run_jobs() { # CONFIGURATION
  [ ! -x "$DDLRUN_BUILD/tests/mpi_identity" ] || mpi_program=$DDLRUN_BUILD/tests/mpi_identity
  part=launcher start_cluster 4 4 "${cpus:-8}"
  empty_home
  write_scripts
  submit_jobs
  local name wanted launch launcher version faults=() right=0 refused=0
  version=$(slurm_version)
  while IFS='|' read -r name _ wanted _; do
    for launcher in srun mpirun; do
      for launch in $([ "$name" = array ] && echo array-0 array-1 || echo "$name"); do
        judge "$1" "$launch" "$launcher" "${plan-$wanted}"
      done
    done
  done < <(each_line "$jobs")
  echo "# Slurm $version: $1: $right right, $refused refused, ${#faults[@]} wrong" >&3
  [ ${#faults[@]} -eq 0 ] || { printf '%s\n' "${faults[@]}"; return 1; }
}

setup() {
  case $BATS_TEST_DESCRIPTION in
    *' [CI]') ;;
    *) [ -n "${DDLRUN_LONG:-}" ] || skip "DDLRUN_LONG=1 ctest --test-dir build/release -R configurations_cluster" ;;
  esac
}
teardown() { stop_cluster; }

slurm_version() { slurmctld -V | sed 's/.* //'; } # "24.11.5" of "slurm 24.11.5" and "slurm-wlm 24.11.5"

needs_slurm() { # YEAR.MONTH
  [ "$(printf '%s\n' "$1" "$(slurm_version)" | sort -V | head -n 1)" = "$1" ] || skip "since Slurm $1"
}

# Neighbours by name are not neighbours by network.
switches='SwitchName=s1 Nodes=n1,n3
SwitchName=s2 Nodes=n2,n4
SwitchName=top Switches=s[1-2]'
blocks='BlockName=b1 Nodes=n1,n3
BlockName=b2 Nodes=n2,n4
BlockSizes=2'
cores='NodeName=n[1-@NODES@] CPUs=8 Sockets=2 CoresPerSocket=2 ThreadsPerCore=2 RealMemory=4000 @GRES@'

@test "no topology" { run_jobs flat; }

@test "switches that are not in the order of the node names [CI]" {
  CLUSTER_SLURM_CONF=TopologyPlugin=topology/tree CLUSTER_TOPOLOGY=$switches run_jobs tree
}

@test "nodes are numbered by switches" {
  needs_slurm 23.02
  CLUSTER_SLURM_CONF=$'TopologyPlugin=topology/tree\nTopologyParam=SwitchAsNodeRank' CLUSTER_TOPOLOGY=$switches run_jobs tree-ranks
}

@test "blocks that are not in the order of the node names" {
  needs_slurm 23.11
  CLUSTER_SLURM_CONF=TopologyPlugin=topology/block CLUSTER_TOPOLOGY=$blocks run_jobs block
}

@test "two partitions, one of switches and one of blocks" {
  needs_slurm 25.05
  local topology='---
- topology: switches
  cluster_default: true
  tree:
    switches:
      - {switch: s1, nodes: "n1,n3"}
      - {switch: s2, nodes: "n2,n4"}
      - {switch: top, children: "s[1-2]"}
- topology: blocks
  cluster_default: false
  block:
    block_sizes: [2]
    blocks:
      - {block: b1, nodes: "n1,n4"}
      - {block: b2, nodes: "n2,n3"}'
  CLUSTER_SLURM_CONF='PartitionName=main Nodes=ALL Default=YES Topology=switches State=UP
PartitionName=gpu Nodes=ALL Topology=blocks State=UP' CLUSTER_TOPOLOGY=$topology partitions_of_jobs="main gpu" run_jobs two-topologies
}

@test "cores are given" { CLUSTER_SLURM_CONF="$cores"$'\nSelectTypeParameters=CR_Core_Memory' run_jobs cores; }

@test "sockets are given" { CLUSTER_SLURM_CONF="$cores"$'\nSelectTypeParameters=CR_Socket_Memory' run_jobs sockets; }

@test "the node with the least load is given" {
  CLUSTER_SLURM_CONF="$cores"$'\nSelectTypeParameters=CR_Core_Memory,CR_LLN' run_jobs least-loaded
}

@test "one task for each core [CI]" {
  CLUSTER_SLURM_CONF="$cores"$'\nSelectTypeParameters=CR_Core_Memory,CR_ONE_TASK_PER_CORE' run_jobs one-task-per-core
}

@test "Slurm binds tasks to CPUs" { cpus=$(nproc) CLUSTER_SLURM_CONF=TaskPlugin=task/affinity run_jobs affinity; }

@test "each job has a manager of its steps" {
  needs_slurm 24.05
  CLUSTER_SLURM_CONF=$'SlurmctldParameters=enable_stepmgr\nPrologFlags=Contain' run_jobs stepmgr
}

# A job has all GPUs of its nodes, whatever it asked for.
@test "a partition of whole nodes" {
  CLUSTER_SLURM_CONF='PartitionName=main Nodes=ALL Default=YES OverSubscribe=EXCLUSIVE State=UP' plan='' run_jobs exclusive
}

@test "PMIx is Slurm's default" {
  compgen -G '/usr/lib/*/slurm*/mpi_pmix*.so' > /dev/null || skip "this Slurm has no PMIx"
  CLUSTER_SLURM_CONF=MpiDefault=pmix run_jobs pmix-default
}

@test "a range of ports for srun" { CLUSTER_SLURM_CONF=SrunPortRange=60001-60400 run_jobs ports; }

@test "KillWait as Slurm has it" { CLUSTER_SLURM_CONF=KillWait=30 run_jobs kill-wait; }

@test "names of nodes that are no names of hosts [CI]" {
  CLUSTER_HOST_NAMES=host CLUSTER_SLURM_CONF='NodeName=n[1-@NODES@] NodeHostname=host[1-@NODES@] NodeAddr=10.77.1.[1-@NODES@] CPUs=@CPUS@ \
RealMemory=4000 @GRES@' run_jobs host-names
}

@test "jobs may be requeued by those of a higher partition" {
  CLUSTER_SLURM_CONF=$'PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE' run_jobs preempt
}
