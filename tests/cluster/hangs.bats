#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Hangs of real programs, four ranks on two nodes, and what ddlctl why says of each: which rank, and what holds it up.

# shellcheck disable=SC2154 # set by bats and common.bash

load common

setup_file() {
  # A file system that can be made to hang, which the nodes see.
  export hanging
  hanging=$(mktemp -d /var/tmp/ddlrun-hangs.XXXXXX)
  mkdir "$hanging/mount"
  truncate -s 16M "$hanging/image"
  mkfs.ext4 -q "$hanging/image"
  mount -o loop "$hanging/image" "$hanging/mount" || : # no loop devices here
  chmod -R a+rwX "$hanging"
  start_cluster 2 2 8
  has_cluster || return 0
  install -m 644 "$BATS_TEST_DIRNAME/hangs.py" "$cluster_dir/opt/"
  # py-spy, where this machine has it, is where the nodes find it.
  local spy
  spy=$(command -v py-spy) || return 0
  install -m 755 "$spy" "$cluster_dir/opt/bin/py-spy"
}
teardown_file() {
  stop_cluster
  fsfreeze -u "$hanging/mount" 2> /dev/null || :
  ! mountpoint -q "$hanging/mount" || umount "$hanging/mount"
  rm -rf "$hanging"
}
setup() { empty_home; }

# says PATTERN: so does ddlctl why, about $job; $line is what it said.
# shellcheck disable=SC2053 # it is a pattern
says() {
  line=$(hpc ddlctl why "$job" 2>&1) || return 1
  [[ $line == $1 ]]
}

are_at_rest() {
  local rank
  for rank in 0 1 2 3; do
    [ "$(cat "$work/d/step.$rank" 2> /dev/null || echo 0)" -ge 3 ] || return 1
  done
}

# hang COMMAND: a job of two nodes with two ranks each; $job is its number.
hang() {
  script hang "ddlrun $1"
  run hpc sbatch --parsable -N2 --gres=gpu:2 --nodelist=n1,n2 --time=5 --output=hang.out "$work/hang"
  [ "$status" -eq 0 ]
  job=$output
}

end_hang() {
  hpc scancel "$job"
  cluster at n2 pkill -KILL -u hpc || :
  cluster at n1 pkill -KILL -u hpc || :
  wait_for 60 job_has_ended "$job"
}

trimmed() { sed 's/^ *//; s/ *$//' <<< "$1"; }

# Each row: HOW | PATTERN | the same without py-spy. Rank 2 is the odd one.
hangs() {
  local how with without pattern wrong=0
  while IFS='|' read -r how with without; do
    how=$(trimmed "$how") pattern=$(trimmed "$with")
    [ -x "$cluster_dir/opt/bin/py-spy" ] || pattern=$(trimmed "${without:-$with}")
    rm -rf "$work/d"
    hpc sh -c 'mkdir d; mkfifo d/fifo; : > d/lock'
    case $how in
      mount)
        mountpoint -q "$hanging/mount" || continue
        hpc ln -s "$hanging/mount" d/mount
        fsfreeze -f "$hanging/mount" ;;
      lock) cluster at n2 sh -c "flock '$work/d/lock' sleep 300 > /dev/null 2>&1 &" ;;
    esac
    if [ "$how" = mpi ]; then
      hang "$build/tests/hangs_mpi 2"
    else
      hang "/usr/bin/python3 $cluster_dir/opt/hangs.py 2 $how $work/d"
      wait_for 90 are_at_rest
    fi
    if wait_for 60 says "$pattern"; then
      echo "# $how: $line" >&3
    else
      wrong=$((wrong + 1))
      echo "$how: not $pattern, but: $line"
      hpc ddlctl why -v "$job" 2>&1 || :
    fi
    [ "$how" != mount ] || fsfreeze -u "$hanging/mount"
    [ "$how" != lock ] || cluster at n2 pkill -KILL sleep || :
    end_hang
  done
  [ "$wrong" -eq 0 ]
}

@test "real PyTorch over gloo" {
  /usr/bin/python3 -c 'import torch' 2> /dev/null || skip "python3-torch is not installed"
  hangs << 'ROWS'
sleep           | rank 2 (n2, pid *): asleep (clock_nanosleep) in hang (hangs.py:*; 3 other ranks wait in backward * | perhaps rank 2 (n2, pid *): asleep *
collective      | perhaps rank 2 (n2, pid *): waits in barrier (hangs.py:*; 3 other ranks wait in backward * | all 4 ranks wait *
behind          | perhaps rank 2 (n2, pid *): waits in barrier (hangs.py:*; 3 other ranks wait in backward * | all 4 ranks wait *
stopped         | rank 2 (n2, pid *): stopped by SIGSTOP *
fifo            | rank 2 (n2, pid *): opens the FIFO */fifo, whose other end nobody opens*; 3 other ranks wait *
mount           | rank 2 (n2, pid *): cannot be interrupted in * of */mount/file on ext4 at */mount; 3 other ranks wait *
lock            | rank 2 (n2, pid *): waits for the lock of */lock*; 3 other ranks wait in backward * | perhaps rank 2 (n2, pid *): waits for the lock of */lock*
child_killed    | perhaps rank 2 (n2, pid *): its child * was killed by signal 9; it reads a pipe*; 3 other ranks wait *
worker_deadlock | perhaps rank 2 (n2, pid *): waits in train (hangs.py:*) for its worker pid *, which waits in *__getitem__ (hangs.py:*; 3 other ranks wait in backward * | perhaps rank 2 (n2, pid *
thread          | perhaps rank 2 (n2, pid *): waits in wait_for_answers (hangs.py:*; 3 other ranks wait in backward * | all 4 ranks wait *
gil             | rank 2 (n2, pid *): asleep (clock_nanosleep) in hang (hangs.py:*; 3 other ranks wait in backward * | perhaps rank 2 (n2, pid *): asleep *
loop            | perhaps rank 2 (n2, pid *): computes (* CPUs)*; 3 other ranks wait *
tool            | rank 2 (n2, pid *): its process * (sh) opens the FIFO */fifo, whose other end nobody opens*; 3 other ranks wait *
alike           | all 4 ranks wait in recv (hangs.py:* | all 4 ranks wait *
ROWS
}

@test "a real MPI, whose ranks wait with a busy CPU" {
  [ -x "$build/tests/hangs_mpi" ] || skip "built without MPI"
  command -v eu-stack > /dev/null || command -v gdb > /dev/null || skip "neither eu-stack nor gdb is here"
  hangs << 'ROWS'
mpi | perhaps rank 2 (n2, pid *): waits in *MPI_Recv (main); 3 other ranks wait in *MPI_Allreduce (main)*
ROWS
}

is_training() { [ "$(hpc ddlctl status "$work/run" 2> /dev/null | sed -n 's/^state  *//p')" = training ]; }

@test "ddltraind, whose second node is cut off" {
  hang "ddltraind --arch=resnet_tiny --classes=10 --image_size=32 --batch_size=4 --threads=1 --backend=cpu \
    --iter_unit=batch --num_iter=1000000 --display_every=1000 --mode=train --results_dir=run --checkpoint_every=0"
  wait_for 60 is_training
  cluster cut n2
  sleep 3
  wait_for 90 says 'perhaps rank 2 (n2): its node does not answer; likewise rank 3; 2 other ranks wait*'
  echo "# ddltraind: $line" >&3
  cluster heal n2
  end_hang
}
