#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# ddlrun --check=full and --check-only on a real Slurm: all nodes meet, and what is broken is named.

# shellcheck disable=SC2016 # the ranks' shells expand, not ours
# shellcheck disable=SC2030,SC2031,SC2154 # run and common.bash set them

load common

setup_file() {
  CLUSTER_SLURM_CONF=SlurmdTimeout=15 start_cluster 4 2 4
  has_cluster || return 0
  add_fabric 4
}

teardown_file() { stop_cluster; }

setup() { empty_home; }

# Every check ends by itself, and leaves nothing.
teardown() {
  has_cluster || return 0
  local node
  for node in n1 n2 n3 n4; do wait_for 20 nothing_left_on "$node"; done
  ! compgen -G "$work/.ddlrun-check.*" > /dev/null
}

# What n2 and n3 send each other over the fabric gets lost, silently.
break_pair() {
  cluster in ip -n n2 neigh replace 10.78.1.3 lladdr 02:00:00:00:00:01 dev eth1 nud permanent
  cluster in ip -n n3 neigh replace 10.78.1.2 lladdr 02:00:00:00:00:01 dev eth1 nud permanent
}
mend_pair() {
  cluster in ip -n n2 neigh del 10.78.1.3 dev eth1
  cluster in ip -n n3 neigh del 10.78.1.2 dev eth1
}

require_fabric() {
  run "$cluster_dir/opt/libexec/ddlrun/ddlrun-node-check"
  [[ $output != *'"pmix":""'* && $output != *'"ucx":""'* ]] || skip "this build has no PMIx or no UCX"
}

# checked [OPTION...]: ddlrun --check-only in a job of four nodes, over the fabric.
checked() {
  script check.sh "export UCX_TLS=tcp,self UCX_NET_DEVICES=eth1" "ddlrun --check-only $*"
  batch check.sh -N4 --gres=gpu:2
  echo "$output"
}

@test "healthy nodes pass, by srun and by mpirun" {
  require_fabric
  local launcher
  for launcher in srun mpirun; do
    checked --launcher=$launcher
    [ "$status" -eq 0 ]
    [[ $output == *"nodes        ok         4 nodes answered"* ]]
    [[ $output == *"gpus         ok         8 planned, all there"* ]]
    [[ $output == *"directory    ok         $work on 4 nodes, "* ]]
    [[ $output == *"clocks       ok         in step within "* ]]
    [[ $output == *"connections  ok         6 pairs of 4 nodes talk, the slowest n"* ]]
  done
}

@test "--check=full goes on to the ranks" {
  script full.sh 'ddlrun --check=full sh -c '\''echo "rank $RANK"'\'''
  batch full.sh -N2 --gres=gpu:2
  expect_status 0
  [ "$(grep -c '^rank [0-3]$' <<< "$output")" -eq 4 ]
  [[ $output == *"nodes        ok         2 nodes answered"* ]]
}

# One node has a network more than the others.
@test "--site-report tells what the nodes have in common once, what differs by node, and no secret" {
  require_fabric
  cluster in ip link add odd0peer type veth peer name odd0 netns n3
  printf '%s\n' 'environment: {HF_TOKEN: cherry-1}' > "$work/site.yaml"
  script report.sh "export UCX_TLS=tcp,self UCX_NET_DEVICES=eth1 API_KEY=cherry-2" \
    'ddlrun --site ~/site.yaml --site-report' 'ddlrun --site ~/site.yaml --site-report=json'
  batch report.sh -N4 --gres=gpu:2
  cluster in ip link del odd0peer
  expect_status 0
  [ "$(grep -cE '^  kernel +' <<< "$output")" -eq 1 ]
  grep -qE '^  network eth1 +[^ ]+.*[^)]$' <<< "$output"
  grep -qE '^  network odd0 +not there \(n\[1-2,4\]\)$' <<< "$output"
  grep -qE '^  network odd0 +.*virtual \(n3\)$' <<< "$output"
  grep -qE '^  network odd0 +differs between nodes: not there \(n\[1-2,4\]\), .* \(n3\)$' <<< "$output"
  grep -qE '^  nodes +4 nodes: n\[1-4\]$' <<< "$output"
  grep -qE '^  connections +ok: 6 pairs of 4 nodes talk' <<< "$output"
  grep -qE '^  TaskPlugin +[^ ]' <<< "$output"
  grep -qE '^  site file +~/site.yaml$' <<< "$output"
  [[ $output == *'"format": 1'* ]]
  [[ $output != *cherry* && $output != *"$work"* ]]
}

@test "a pair that does not talk over the fabric is named, and no rank starts" {
  require_fabric
  local launcher started
  break_pair
  for launcher in srun mpirun; do
    script pair.sh "export UCX_TLS=tcp,self UCX_NET_DEVICES=eth1" "ddlrun --check=full --launcher=$launcher touch started"
    started=$SECONDS
    batch pair.sh -N4 --gres=gpu:2
    expect_status 78
    [[ $output == *"connections  fail       do not reach each other: n2 with n3 (no answer within 5 s): "* ]]
    [[ $output == *"a check failed, no rank was started"* ]]
    [ ! -e "$work/started" ]
    [ $((SECONDS - started)) -lt 20 ]
  done
  mend_pair
}

@test "a node without the fabric is named" {
  require_fabric
  cluster in ip link set f3 down
  checked
  cluster in ip link set f3 up
  [ "$status" -eq 78 ]
  [[ $output == *"connections  fail       do not reach each other: n3 with n[1-2,4] ("* ]]
}

@test "a node that is cut off is named, and nothing hangs" {
  local started=$SECONDS
  script cut.sh 'touch ready; until [ -e cut ]; do sleep 0.1; done; ddlrun --check=full --launcher=srun touch started'
  hpc sbatch --quiet --no-kill --output="$work/cut.out" -N4 --gres=gpu:2 "$work/cut.sh"
  wait_for 20 test -e "$work/ready"
  cluster cut n3
  touch "$work/cut"
  wait_for 75 grep -q 'a check failed' "$work/cut.out"
  cluster heal n3
  cat "$work/cut.out"
  grep -qE '^nodes +fail +no answer from n3; the launcher ended with exit code ' "$work/cut.out"
  grep -qE '^\| srun: error: .* n3' "$work/cut.out"
  [ ! -e "$work/started" ]
  [ $((SECONDS - started)) -lt 90 ]
  # The node is used again.
  hpc scancel --user=hpc
  wait_for 60 cluster in sh -c '[ "$(sinfo -h -N -o %t | sort -u)" = idle ]'
}

@test "a GPU that a node has lost is missed" {
  cluster at n2 mv /dev/nvidia1 /dev/lost
  # The shim sees it too, unless it is told not to look.
  script seen.sh 'ddlrun --launcher=srun true; echo auto $?; ddlrun --launcher=srun --check=off true; echo off $?'
  batch seen.sh -N4 --gres=gpu:2
  grep -x 'auto 78' <<< "$output"
  grep -x 'off 0' <<< "$output"
  checked --launcher=srun
  cluster at n2 mv /dev/lost /dev/nvidia1
  [ "$status" -eq 78 ]
  [[ $output == *"gpus         fail       2 planned, 1 seen (n2): "* ]]
}

# lose NODE, find_again NODE: one of its two GPUs.
lose() { cluster at "$1" mv /dev/nvidia1 /dev/lost; }
find_again() { cluster at "$1" mv /dev/lost /dev/nvidia1; }

# with_spare: ddlrun on three nodes of four.
with_spare() {
  script spare.sh 'ddlrun --check=full --spare-nodes 1 sh -c '\''echo "rank $RANK on $(hostname)"'\'''
  batch spare.sh -N4 --gres=gpu:2
  echo "$output"
}

@test "a node that is found bad is left out, and a spare one takes its place" {
  lose n2
  with_spare
  find_again n2
  [ "$status" -eq 0 ]
  [ "$(grep '^rank ' <<< "$output" | sort)" = $'rank 0 on n1\nrank 1 on n1\nrank 2 on n3\nrank 3 on n3\nrank 4 on n4\nrank 5 on n4' ]
  grep -x 'ddlrun: \[WARN DDL-21-7\] n2 is left out: gpus: 2 planned, 1 seen (n2)' <<< "$output"
  [[ $output == *"gpus         fail       2 planned, 1 seen (n2): "*"gpus         ok         6 planned, all there"* ]]
  run ! grep 'no rank was started' <<< "$output"
}

@test "more bad nodes than spare ones are left out, where fewer nodes are enough" {
  lose n2
  lose n3
  script fewer.sh 'ddlrun --check=full --spare-nodes 1 --min-nodes 2 sh -c '\''echo "rank $RANK of $WORLD_SIZE on $(hostname)"'\'''
  batch fewer.sh -N4 --gres=gpu:2
  find_again n2
  find_again n3
  expect_status 0
  [ "$(grep '^rank ' <<< "$output" | sort)" = $'rank 0 of 4 on n1\nrank 1 of 4 on n1\nrank 2 of 4 on n4\nrank 3 of 4 on n4' ]
  [[ $output == *"ddlrun: checking again, without them"* ]]
  grep -x 'ddlrun: \[WARN DDL-21-11\] 2 of the 4 nodes of this job are left, without n2, n3: 4 ranks' <<< "$output"
}

@test "more bad nodes than spare ones, a spare one among them, end the job" {
  local other
  lose n2
  for other in n3 n4; do
    lose "$other"
    with_spare
    find_again "$other"
    [ "$status" -eq 78 ]
    [[ $output == *"a check failed, no rank was started"* ]]
    run ! grep '^rank ' <<< "$output"
  done
  find_again n2
}

@test "a node that is cut off is left out, too" {
  script cut.sh 'touch ready; until [ -e cut ]; do sleep 0.1; done' \
    'ddlrun --check=full --launcher=srun --spare-nodes 1 sh -c '\''echo "rank $RANK on $(hostname)"'\''' 'echo "exit code $?"'
  hpc sbatch --quiet --no-kill --output="$work/cut.out" -N4 --gres=gpu:2 "$work/cut.sh"
  wait_for 20 test -e "$work/ready"
  cluster cut n3
  touch "$work/cut"
  wait_for 150 grep -q '^exit code' "$work/cut.out" || true
  cluster heal n3
  cat "$work/cut.out"
  grep -q '^exit code 0' "$work/cut.out"
  grep -q '^ddlrun: \[WARN DDL-21-7\] n3 is left out: nodes: no answer from n3; the launcher ' "$work/cut.out"
  [ "$(grep -c '^rank [0-5] on n[124]$' "$work/cut.out")" -eq 6 ]
  hpc scancel --user=hpc
  wait_for 60 cluster in sh -c '[ "$(sinfo -h -N -o %t | sort -u)" = idle ]'
}

@test "a directory that a node does not share is named" {
  local node
  for node in n1 n2 n3 n4; do cluster at "$node" mkdir -m 777 /tmp/here; done
  script here.sh 'cd /tmp/here; ddlrun --check-only'
  batch here.sh -N4 --gres=gpu:2
  echo "$output"
  for node in n1 n2 n3 n4; do cluster at "$node" rmdir /tmp/here; done
  [ "$status" -eq 78 ]
  [[ $output == *"directory    fail       not the directory of ddlrun: /tmp/here (n[2-4]): "* ]]
}

@test "scancel during the check leaves nothing" {
  require_fabric
  break_pair
  script cancelled.sh "export UCX_TLS=tcp,self UCX_NET_DEVICES=eth1" 'exec ddlrun --check=full touch started'
  hpc sbatch --quiet --output="$work/cancelled.out" -N4 --gres=gpu:2 "$work/cancelled.sh"
  wait_for 20 compgen -G "$work/.ddlrun-check.*"
  hpc scancel --user=hpc --full
  mend_pair
  wait_for 20 cluster in sh -c '[ -z "$(squeue -h)" ]'
  [ ! -e "$work/started" ]
}
