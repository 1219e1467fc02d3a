#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Hangs of real programs on two nodes, four ranks, and what ddlctl why says of each.

# shellcheck disable=SC2154 # set by bats and common.bash

load common

setup_file() {
  # A file system that can be made to hang, which the nodes see.
  export hanging
  hanging=$(mktemp -d /var/tmp/ddlrun-hangs.XXXXXX)
  truncate -s 16M "$hanging/image"
  mkfs.ext4 -q "$hanging/image"
  mkdir "$hanging/mount"
  mount -o loop "$hanging/image" "$hanging/mount" || rmdir "$hanging/mount"
  start_cluster 2 2 8
  has_cluster || return 0
  cp "$BATS_TEST_DIRNAME/hangs.py" "$cluster_dir/opt/"
  chmod a+r "$cluster_dir/opt/hangs.py"
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

# hang OPTIONS COMMAND: a job of two nodes with two ranks each; $job is its number.
hang() {
  script hang "ddlrun $1 $2"
  run hpc sbatch --parsable -N2 --gres=gpu:2 --nodelist=n1,n2 --time=5 --output=hang.out "$work/hang"
  [ "$status" -eq 0 ]
  job=$output
}

# says PATTERN: so does ddlctl why, about the job; $line is what it said.
# shellcheck disable=SC2053 # it is a pattern
says() {
  line=$(hpc ddlctl why "$job" 2>&1) || return 1
  [[ $line == $1 ]]
}

# names RANK PATTERN...: one of them fits; where the line has no "perhaps", the rank must be that one.
is_told() {
  says "$1"
}

end_job() {
  hpc scancel "$job"
  cluster at n2 pkill -KILL -u hpc || :
  cluster at n1 pkill -KILL -u hpc || :
  wait_for 60 job_has_ended "$job"
}

are_at_rest() {
  local rank
  for rank in 0 1 2 3; do
    [ "$(cat "$work/d/step.$rank" 2> /dev/null || echo 0)" -ge 3 ] || return 1
  done
}

@test "real PyTorch over gloo: the rank that holds up the others" {
  /usr/bin/python3 -c 'import torch' 2> /dev/null || skip "python3-torch is not installed"
  local how pattern
  while IFS='|' read -r how pattern; do
    how=$(xargs <<< "$how") pattern=${pattern# }
    rm -rf "$work"/d
    hpc sh -c 'mkdir d; mkfifo d/fifo; : > d/lock'
    if [ "$how" = mount ]; then
      chmod 755 "$hanging"
      chmod 777 "$hanging/mount"
      hpc ln -sfn "$hanging/mount" d/mount
      fsfreeze -f "$hanging/mount"
    fi
    if [ "$how" = lock ]; then
      cluster at n2 sh -c "flock '$work/d/lock' sleep 200 > /dev/null 2>&1 &"
    fi
    case $how in
      mpi) hang "" "$build/tests/hangs_mpi 2"; sleep 5 ;;
      *) hang "" "/usr/bin/python3 $cluster_dir/opt/hangs.py 2 $how $work/d" ;;
    esac
    [ "$how" = mpi ] ||
    if wait_for 60 are_at_rest; then :; else echo "$how: not at rest: $(tail -n 3 "$work/hang.out")" >&3; fi
    sleep 2
    if wait_for 12 says "$pattern"; then
      echo "# $how: $line" >&3
    else
      echo "# $how: WRONG: $line" >&3
      hpc ddlctl why -v "$job" 2>&1 | sed 's/^/#   /' >&3 || :
    fi
    [ "$how" != mount ] || fsfreeze -u "$hanging/mount"
    [ "$how" != lock ] || cluster at n2 pkill -KILL sleep || :
    end_job
  done <<< "${HANGS:-$(cat <<'ROWS'
sleep | rank 2 (n2, pid *): asleep (clock_nanosleep)*; 3 other ranks wait in *
collective | perhaps rank 2 (n2, pid *): waits in barrier *; 3 other ranks wait in *
behind | perhaps rank 2 (n2, pid *): waits in barrier *; 3 other ranks wait in *
stopped | rank 2 (n2, pid *): stopped *; 3 other ranks wait in *
fifo | rank 2 (n2, pid *): opens the FIFO */fifo, *; 3 other ranks wait in *
mount | rank 2 (n2, pid *): cannot be interrupted in * on ext4 at */mount*; 3 other ranks wait in *
lock | *rank 2 (n2, pid *): waits for the lock of */lock*; 3 other ranks wait in *
child_killed | perhaps rank 2 (n2, pid *): its child * was killed by signal 9*; 3 other ranks wait in *
worker_deadlock | perhaps rank 2 (n2, pid *): waits in *; 3 other ranks wait in *
thread | perhaps rank 2 (n2, pid *): waits in wait_for_answers *; 3 other ranks wait in *
gil | rank 2 (n2, pid *): asleep *; 3 other ranks wait in *
loop | perhaps rank 2 (n2, pid *): computes *; 3 other ranks wait in *
mpi | perhaps rank 2 (n2, pid *): waits in *MPI_Recv*; 3 other ranks wait in *MPI_Allreduce*
tool | rank 2 (n2, pid *): its process * opens the FIFO *; 3 other ranks wait in *
alike | all 4 ranks wait in recv *
ROWS
)}"
}
