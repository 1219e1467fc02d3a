#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Jobs of thousands of nodes, as far as one machine can try them: Slurm's variables are made up, and the srun here starts the shims
# of a few ranks, with the environment that ddlrun gave it for all.

load common

# allocation NODES: a job of so many nodes, n1 and on, with eight GPUs each.
allocation() {
  export SLURM_JOB_ID=4711 SLURM_JOB_NODELIST="n[1-$1]" SLURM_JOB_NUM_NODES=$1 SLURMD_NODENAME=n1 SLURM_GPUS_PER_NODE=8 SLURM_GPUS_ON_NODE=8
  topology=$BATS_TEST_DIRNAME/../../fixtures/hwloc/dgx1v.xml
}

# make_srun WORLD RANK:LOCAL_RANK:HOST...: an srun that starts these ranks one after the other.  Its arguments go to ./argv, the names
# of the variables that hold the plan to ./parts.
make_srun() {
  local world=$1 word rank
  shift
  mkdir -p bin
  {
    printf '%s\n' '#!/bin/bash' 'case $1 in' '  --mpi=list) printf "MPI plugin types are...\n\tnone\n"; exit ;;' \
      '  --version) echo slurm 24.11.5; exit ;;' 'esac' 'printf "%s\n" "$@" > argv' 'echo ${!DDLRUN_RANK_JOB*} > parts' \
      'while [ "$1" != -- ]; do shim=$1; shift; done'
    for word; do
      IFS=: read -ra rank <<< "$word"
      echo "SLURM_PROCID=${rank[0]} SLURM_LOCALID=${rank[1]} SLURMD_NODENAME=${rank[2]} SLURM_STEP_NUM_TASKS=$world" \
        '"$shim" "$@" || exit'
    done
  } > bin/srun
  chmod +x bin/srun
  search_path=$PWD/bin:$PATH # of run_ddlrun
}

# What a rank says of itself.
own='echo $RANK/$WORLD_SIZE $DDLRUN_HOST $DDLRUN_NODE_RANK/$DDLRUN_NODE_COUNT $LOCAL_RANK/$LOCAL_WORLD_SIZE ${DDL_HOST_LIST+list} ${!DDLRUN_RANK_JOB*}'

@test "4,096 nodes of 8 GPUs are planned: every rank has a line, and what srun is told is short" {
  allocation 4096
  make_srun 32768
  PATH=$PWD/bin:$PATH "$ddlrun" --dry-run --topology "$topology" --pmi none true > plan 2> messages
  [ ! -s messages ]
  [ "$(head -n 1 plan)" = "32768 ranks on 4096 nodes" ]
  [ "$(grep -cE '^[0-9]+ +n[0-9]+ ' plan)" -eq 32768 ]
  grep -qE '^32767 +n4096 +7 +7 ' plan
  mapfile -t last < <(tail -n 2 plan)
  [[ ${last[0]} == "[WARN DDL-21-6] DDL_HOST_LIST is not set: "* ]]
  [[ ${last[1]} == "+ $PWD/bin/srun --mpi=none --ntasks=32768 --distribution=arbitrary --nodelist="* ]]
  [ "${#last[1]}" -lt 500 ]
}

@test "each of 32,768 ranks is told what is its own, in one variable and without DDL_HOST_LIST" {
  allocation 4096
  make_srun 32768 0:0:n1 12345:1:n1544 32767:7:n4096
  expect=0 run_ddlrun --topology "$topology" --bind none --pmi none bash -c "$own"
  [ "$output" = "0/32768 n1 0/4096 0/8
12345/32768 n1544 1543/4096 1/8
32767/32768 n4096 4095/4096 7/8" ]
  [ "$(cat parts)" = DDLRUN_RANK_JOB ]
  [ "$(grep -c 'WARN DDL-21-6' <<< "$messages")" -eq 1 ]
}

@test "a rank that is not where the plan has it is refused, among 32,768 as well" {
  allocation 4096
  make_srun 32768 12345:1:n1543
  expect=78 run_ddlrun --topology "$topology" --bind none --pmi none true
  [[ $messages == *"rank 12345 runs on n1543, the plan says n1544"* ]]
}

@test "--no-ddl-host-list leaves the list out without a warning, also where it would fit" {
  allocation 4096
  make_srun 32768 9:1:n2
  run_ddlrun --topology "$topology" --bind none --pmi none --no-ddl-host-list bash -c "$own"
  [ "$output" = "9/32768 n2 1/4096 1/8" ]
  [[ $messages != *WARN* ]]
  allocation 2
  make_srun 16 9:1:n2
  run_ddlrun --topology "$topology" --bind none --pmi none bash -c "$own"
  [ "$output" = "9/16 n2 1/2 1/8 list" ]
  run_ddlrun --topology "$topology" --bind none --pmi none --no-ddl-host-list bash -c "$own"
  [ "$output" = "9/16 n2 1/2 1/8" ]
}

@test "hosts without any order are a long plan, which every rank still gets" {
  allocation 16384
  hosts=$(seq 1 16384 | awk '{ printf "%sn%d", (NR > 1 ? "," : ""), ($1 * 7919) % 16384 + 1 }')
  # The first four of the order: n7920 n15839 n7374 n15293.
  make_srun 131072 8:0:n15839 131071:7:n1
  expect=0 run_ddlrun --topology "$topology" --bind none --pmi none -H "$hosts" bash -c "$own"
  [ "$output" = "8/131072 n15839 1/16384 0/8
131071/131072 n1 16383/16384 7/8" ]
  [ "$(cat parts)" = "DDLRUN_RANK_JOB DDLRUN_RANK_JOB_2" ]
  grep -qx -e --distribution=arbitrary argv
}

# What the shims and srun say when all ranks die at once, rank 21717 a little before the others.
die_at_once() {
  awk 'BEGIN {
    for (rank = 0; rank < 32768; ++rank) {
      for (line = 0; line < 2; ++line) printf "ddlrun-rank[KEY]: rank %d | last words of %d\n", rank, rank
      printf "ddlrun-rank[KEY]: rank %d on n%d (pid 7) ended with signal 6 (Aborted) at 2026-11-22T12:13:22.%06dZ\n", \
        rank, int(rank / 8) + 1, rank == 21717 ? 100 : 800
    }
    for (node = 1; node <= 4096; ++node) printf "srun: error: n%d: tasks %d-%d: Aborted\n", node, 8 * node - 8, 8 * node - 1
  }'
}

@test "32,768 ranks that die at once: the first few, how many, and one cause with its last lines" {
  allocation 4096
  mkdir bin
  die_at_once > storm
  printf '%s\n' '#!/bin/bash' 'case $1 in' '  --mpi=list) printf "MPI plugin types are...\n\tnone\n" ;;' '  --version) echo slurm 24.11.5 ;;' \
    '  *) sed "s/KEY/$(cut -d " " -f 4 <<< "$DDLRUN_RANK_JOB")/" storm >&2; exit 134 ;;' 'esac' > bin/srun
  chmod +x bin/srun
  search_path=$PWD/bin:$PATH
  expect=134 run_ddlrun --topology "$topology" --pmi none --no-ddl-host-list true
  [ "$(wc -l <<< "$messages")" -eq 15 ]
  [ "$(grep -c '^ddlrun-rank: rank [0-7] on n1 (pid 7) ended with signal 6' <<< "$messages")" -eq 8 ]
  [[ $messages == *"
ddlrun: last lines of rank 21717:
ddlrun:   | last words of 21717
ddlrun:   | last words of 21717
ddlrun: 32768 ranks ended: 32768 with signal 6 (Aborted); 8 lines about them are above, 36856 were left out
ddlrun: [ERROR DDL-20-1] the job failed: rank 21717 on n2715 (pid 7) ended first, with signal 6 (Aborted), "* ]]
}
