#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# ddlrun outside of Slurm, on machines that the user names: mpirun reaches them by ssh.

# shellcheck disable=SC2016 # the ranks' shells expand, not ours
# shellcheck disable=SC2154 # set by bats and common.bash

load common

setup_file() {
  command -v mpirun > /dev/null || skip_all "mpirun is not installed" || return 0
  [ -x /usr/sbin/sshd ] || skip_all "sshd is not installed" || return 0
  start_cluster 2 2 8
  has_cluster || return 0
  local node
  for node in n1 n2; do start_sshd "$node"; done
  # The user's key, and no question about hosts that were never seen.
  hpc mkdir -m 700 .ssh
  hpc ssh-keygen -q -t ed25519 -N '' -f .ssh/id_ed25519
  hpc cp .ssh/id_ed25519.pub .ssh/authorized_keys
  printf 'StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\n' | hpc tee .ssh/config > /dev/null
}
teardown_file() { stop_cluster; }
setup() { empty_home; }

start_sshd() { # NODE
  local files=$cluster_dir/etc/ssh-$1
  mkdir "$files"
  ssh-keygen -q -t ed25519 -N '' -f "$files/key"
  printf '%s\n' "HostKey $files/key" "PidFile none" "UsePAM no" "PasswordAuthentication no" > "$files/config"
  cluster at "$1" sh -c 'mkdir -p /run/sshd && exec /usr/sbin/sshd -f "$1" -E "$2"' sh "$files/config" "$cluster_dir/log/sshd-$1.log"
}

# on_n1 COMMAND...: as the user, logged in there.
on_n1() {
  cluster at n1 setpriv --reuid hpc --regid hpc --init-groups \
    env -i -C "$work" HOME="$cluster_dir/home/hpc" USER=hpc PATH="$cluster_dir/opt/bin:/usr/bin:/bin" LC_ALL=C OMPI_MCA_btl=tcp,self "$@"
}

ranks() { sed -n 's/^rank //p' <<< "$output" | sort -n; }

@test "a rank per slot on every machine, with the user's environment" {
  run on_n1 env MINE='x y' ddlrun -H n1:2,n2:2 sh -c 'echo "rank $RANK $(hostname) $LOCAL_RANK/$LOCAL_WORLD_SIZE $MASTER_ADDR $MINE"'
  expect_status 0
  [ "$(ranks)" = $'0 n1 0/2 n1 x y\n1 n1 1/2 n1 x y\n2 n2 0/2 n1 x y\n3 n2 1/2 n1 x y' ]
}

@test "a hostfile, another order, from a machine that runs no rank" {
  printf 'n2 slots=1\n' > hosts
  run on_n1 ddlrun -hostfile hosts sh -c 'echo "rank $RANK $(hostname)"'
  expect_status 0
  [ "$(ranks)" = '0 n2' ]
}

@test "a rank that fails on the other machine: its exit code, and it is named last" {
  run on_n1 ddlrun -H n1,n2 sh -c 'if [ $RANK = 1 ]; then echo this is rank 1 >&2; exit 3; fi; exec sleep 60'
  expect_status 3
  [[ $(tail -n 1 <<< "$output") =~ "rank 1 on n2 (pid "[0-9]+") ended first, with exit code 3, " ]]
  wait_for 10 nothing_left_on n2
}

@test "SIGTERM reaches the ranks of both machines; 75 from all is 75" {
  script rank 'trap "echo got > got.\$RANK; exit 75" TERM' ': > "ready.$RANK"' 'while :; do sleep 0.1; done'
  script job 'ddlrun -H n1,n2 ./rank & echo $! > pid; wait $!' 'echo "exit code $?"'
  on_n1 ./job > job.out 2>&1 3>&- &
  wait_for 20 eval '[ -e ready.0 ] && [ -e ready.1 ] && [ -s pid ]'
  cluster at n1 kill -TERM "$(cat pid)"
  wait_for 20 grep -q 'exit code 75' job.out
  [ -e got.0 ]
  [ -e got.1 ]
  wait_for 10 nothing_left_on n2
}

@test "a machine that cannot be reached ends the job, and is named" {
  run on_n1 ddlrun -H n1,n9 sh -c 'echo "rank $RANK"'
  echo "$output"
  [ "$status" -ne 0 ]
  [[ $output == *n9* ]]
  [[ $output == *"[ERROR DDL-20-"* ]]
  [ -z "$(ranks)" ]
}
