#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A user who may start a few threads and no more.

load common

user=64999 # nobody's: the limit counts all processes of a user

setup() {
  [ "$(id -u)" -eq 0 ] || skip "only root can become a user without processes"
  ddltraind="$DDLRUN_BUILD/bin/ddltraind"
  place=$(mktemp -d /tmp/ddltraind-limits.XXXXXX)
  chmod 777 "$place"
  cp -r "$data" "$place/data"
  cd "$place" || return 1
  setpriv --reuid=$user --regid=$user --clear-groups test -x "$ddltraind" || skip "$ddltraind is not for everybody"
}

teardown() {
  cd / && rm -rf "${place:?}"
}

# with_threads N OPTIONS...: a short run of a user who may have N threads.
with_threads() {
  local threads=$1
  shift
  run_separate timeout -k 5 60 setpriv --reuid=$user --regid=$user --clear-groups prlimit --nproc="$threads" \
    "$ddltraind" --arch=resnet_tiny --data_dir=data --classes=10 --image_size=32 --batch_size=4 --iter_unit=batch \
    --num_iter=2 --lr_warmup_epochs=0 --mode=train --results_dir=run "$@"
}

# Neither a hang, nor the end that OpenMP's runtime makes of a program (1), whichever thread it is that is missing:
# 7 are needed, and as many as the back end has beside itself while OpenMP's runtime ends some and makes others.
@test "threads that cannot be had: 71 with a sentence, at every number of them" {
  for n in {1..8}; do
    expect=71 with_threads "$n" --threads=3 --data_threads=3
    [[ $stderr == *"ddltraind: cannot start "*": Resource temporarily unavailable; ask for fewer threads "* ]]
    [ ! -e run/checkpoints ]
  done
  expect=0 with_threads 40 --threads=3 --data_threads=3
}

@test "of many input threads the one that cannot be had is named" {
  expect=71 with_threads 20 --threads=1 --data_threads=1000
  [[ $stderr == *"cannot start input thread "*" of 1000: "* ]]
}

# As containers have it (docker run --cpus=0.5). The kernel would let more threads wait for each other.
@test "a CPU quota: a thread for each CPU of it, unless OMP_NUM_THREADS says otherwise" {
  [ "$(nproc)" -gt 1 ] || skip "with one core there is one thread anyway"
  local groups=/sys/fs/cgroup own quota=cpu.max amount="50000 100000"
  own=$(sed -n 's/^0:://p' /proc/self/cgroup)
  if grep -qE '^[0-9]+:([^:]*,)?cpu(,[^:]*)?:' /proc/self/cgroup; then
    groups=/sys/fs/cgroup/cpu quota=cpu.cfs_quota_us amount=50000 # the period is 100000 by itself
    own=$(sed -nE 's/^[0-9]+:([^:]*,)?cpu(,[^:]*)?://p' /proc/self/cgroup)
  fi
  group=$groups$own/ddltraind-quota-$$
  mkdir "$group" 2> /dev/null || skip "no control group can be made in $groups$own"
  [ -e "$group/$quota" ] || { rmdir "$group"; skip "$groups$own has no CPU quotas"; }
  echo "$amount" > "$group/$quota"
  in_group() {
    run timeout -k 5 60 bash -c 'echo $$ > "$0/cgroup.procs"; exec "$@"' "$group" "$@"
    echo "$status: $output"
  }
  local train=("$ddltraind" --backend=cpu --mode=training_benchmark --arch=resnet_tiny --image_size=32 --batch_size=4
    --iter_unit=batch --num_iter=2 --warmup_steps=1)
  in_group "${train[@]}"
  local alone=$output
  in_group env OMP_NUM_THREADS=2 "${train[@]}"
  local asked=$output
  in_group "$DDLRUN_BUILD/bin/ddldata" convert --help
  rmdir "$group"
  [[ $alone == *", 1 thread;"* ]]
  [[ $asked == *", 2 threads;"* ]]
  [[ $output == *"--threads N=1 "* ]]
}
