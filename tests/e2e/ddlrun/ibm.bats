#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What scripts written for IBM's ddlrun say, and what its users saw.  The strings are those of its logs: on Bede
# (N8-CIR-Bede/documentation, wmlce.rst) and on Summit (olcf-user-docs, ibm-wml-ce.rst).

load common

fixtures="$BATS_TEST_DIRNAME/../../fixtures"

@test "Summit's line: ranks dealt out to two nodes of six GPUs in turn" {
  require_mpirun
  expect=0 run_ddlrun --dry-run -H g28n14:6,g28n15:6 --oversubscribe --rank-order=cyclic true
  [[ $output == *$'\nDDL_HOST_LIST=g28n14:0,2,4,6,8,10;g28n15:1,3,5,7,9,11\nDDL_OPTIONS=-mode p:6x2x1x1'* ]]
  [[ $output == *" -x DDL_HOST_LIST -x DDL_HOST_PORT -x DDL_OPTIONS "* ]]
  [[ $output == *" -n 12 "* ]]
}

@test "Bede's line: one node of four GPUs" {
  require_mpirun
  expect=0 run_ddlrun --dry-run -H gpu025.bede.dur.ac.uk --accelerators 4 --topology "$fixtures/hwloc/ac922_16c_4v100.xml" python train.py
  [[ $output == *$'\nDDL_HOST_LIST=gpu025.bede.dur.ac.uk:0,1,2,3\nDDL_OPTIONS=-mode p:4x1x1x1'* ]]
  [[ $output == *$'\n+ /'*"/mpirun "*" -n 4 "*" -x DDL_HOST_LIST "*" -x DDL_OPTIONS "*" python train.py" ]]
}

@test "racks and aisles of the machine room" {
  local hosts="n[001-144]"
  SLURM_JOB_ID=7 SLURM_JOB_NODELIST=$hosts SLURM_JOB_NUM_NODES=144 SLURM_GPUS_PER_NODE=4 \
    run_ddlrun --dry-run --nodes 18 --racks 4 --aisles 2 --topology "$fixtures/hwloc/ac922_16c_4v100.xml"
  [ "$status" -eq 0 ]
  [[ $'\n'$output == *$'\nDDL_OPTIONS=-mode p:4x18x4x2 ' ]]
  SLURM_JOB_ID=7 SLURM_JOB_NODELIST=$hosts SLURM_JOB_NUM_NODES=144 SLURM_GPUS_PER_NODE=4 \
    run_ddlrun --dry-run -racks 4 -aisles 2 -nodes 17 --topology "$fixtures/hwloc/ac922_16c_4v100.xml"
  [ "$status" -eq 64 ]
  [[ $messages == *"[ERROR DDL-20-64] --nodes 17 --racks 4 --aisles 2 make 136 nodes, but ranks are on 144"* ]]
}

@test "a script of 2019 runs: --tcp, -accelerators, arguments of IBM's mpirun" {
  require_mpirun
  EGO_TOP=/ego expect=0 run_ddlrun -v --tcp -H "$(hostname)" -n 2 --oversubscribe -m b --mpiarg -pami_noib -mpiarg "-gpu -disable_gdr" \
    --mpiarg "-x EGO_TOP" -mpiarg "-x HOROVOD_FUSION_THRESHOLD=16777216" \
    sh -c 'echo "$EGO_TOP $HOROVOD_FUSION_THRESHOLD $UCX_IB_GPU_DIRECT_RDMA $NCCL_IB_DISABLE $DDL_OPTIONS|"'
  [ "$output" = $'/ego 16777216 no 1 -mode b:2x1x1x1 |\n/ego 16777216 no 1 -mode b:2x1x1x1 |' ]
  [[ $messages == *"ddlrun: [WARN DDL-22-1] --mpiarg '-pami_noib' is of IBM's mpirun: replaced by "* ]]
  [[ $messages == *"ddlrun: [WARN DDL-22-2] --mpiarg '-gpu' is of IBM's mpirun: left out; "* ]]
  [[ $messages == *"ddlrun: [WARN DDL-22-1] --mpiarg '-disable_gdr' is of IBM's mpirun: replaced by '-x UCX_IB_GPU_DIRECT_RDMA=no'; "* ]]
}

@test "arguments for mpirun where there is no mpirun are named" {
  run_ddlrun -n 1 --launcher=local --mpiarg "-x EGO_TOP" --mpiarg -gpu --mpiarg "--timeout 9" echo x
  [ "$output" = x ]
  [[ $messages == *"ddlrun: [WARN DDL-22-2] --mpiarg '-gpu' is of IBM's mpirun: left out; "* ]]
  [[ $messages == *"ddlrun: [WARN DDL-22-3] --mpiarg '--timeout 9' is not used by the local launcher; --launcher=mpirun uses it"$'\n+ '* ]]
}

@test "what --tcp and --mpiarg set reaches ranks that mpirun does not start" {
  EGO_TOP=/ego run_ddlrun -n 1 --launcher=local --tcp -mpiarg "-x EGO_TOP -x HOROVOD_FUSION_THRESHOLD=16777216" \
    --mpiarg "-disable_gdr --mca coll ^hcoll" \
    sh -c 'echo "$EGO_TOP $HOROVOD_FUSION_THRESHOLD $UCX_IB_GPU_DIRECT_RDMA $NCCL_IB_DISABLE" &&
      echo "$OMPI_MCA_pml $OMPI_MCA_btl $OMPI_MCA_coll"'
  [ "$output" = $'/ego 16777216 no 1\nob1 ^openib,ofi,uct ^hcoll' ]
  [[ $messages != *DDL-22-3* ]]
}

@test "where the ranks of a job meet is what -x, the site file or the environment says, in this order" {
  local launcher where=(sh -c 'echo "$MASTER_ADDR:$MASTER_PORT"')
  printf 'environment:\n  MASTER_PORT: "29501"\n' > site.yaml
  for launcher in $(LAUNCHERS='local mpirun' launchers); do
    run_ddlrun -n 1 --launcher="$launcher" --site ./site.yaml "${where[@]}"
    [ "$output" = 127.0.0.1:29501 ]
    MASTER_ADDR=n1-ib MASTER_PORT=29500 run_ddlrun -n 1 --launcher="$launcher" --site ./site.yaml "${where[@]}"
    [ "$output" = n1-ib:29500 ]
    MASTER_PORT=29500 run_ddlrun -n 1 --launcher="$launcher" --site ./site.yaml -x MASTER_PORT=29502 -x MASTER_ADDR=n2-ib "${where[@]}"
    [ "$output" = n2-ib:29502 ]
  done
  expect=78 run_ddlrun -n 1 --launcher=local -x MASTER_PORT=no "${where[@]}"
  [[ $messages == *"MASTER_PORT='no' is no port from 1 to 65535"* ]]
}

@test "a variable by name and one with a value" {
  for launcher in $(LAUNCHERS='local mpirun' launchers); do
    MINE=here run_ddlrun -n 1 --launcher="$launcher" -x MINE -x OTHER='a b' sh -c 'echo "$MINE $OTHER"'
    [ "$output" = "here a b" ]
  done
}

@test "the log is where the second line says, with rank file and plan" {
  require_mpirun
  mkdir runs
  run_ddlrun -n 1 --run-dir runs --launcher=mpirun --mpiarg -gpu true
  log=$(sed -n 's/^Please see \(.*\) for detailed log\.$/\1/p' <<< "$messages")
  [[ $log == "$PWD"/runs/ddlrun.*/ddlrun.log ]]
  grep -q '^+ /' "$log"
  grep -q 'WARN DDL-22-2' "$log"
  grep -q '^exit code 0$' "$log"
  grep -qE "^rank 0=$(hostname)     slot=[0-9]+:[0-9,:;-]+$" "$(dirname "$log")/RANKFILE"
}

@test "-v says what was found and decided" {
  run_ddlrun -v -n 1 true
  [[ $messages == *"launcher: auto"*"# default"*"1 rank on 1 node"*"rank  host"* ]]
  run_ddlrun -n 1 true
  [[ $messages != *"# default"* ]]
}
