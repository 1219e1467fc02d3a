#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Two users on the same nodes, and a /tmp that somebody has prepared.

# shellcheck disable=SC2016 # the ranks' shells expand, not ours
# shellcheck disable=SC2154 # set by bats and common.bash

load common

setup_file() { start_cluster 2 4 8; }
teardown_file() { stop_cluster; }
setup() {
  empty_home
  script job 'ddlrun "$@" sh -c "echo rank \$RANK \$(hostname) run_dir=\$DDLRUN_RUN_DIR"'
}
teardown() {
  has_cluster || return 0
  local node
  for node in n1 n2; do
    cluster at "$node" sh -c 'chmod 1777 /tmp; mount -o remount,size=50% /tmp; find /tmp -mindepth 1 -xdev -user other -delete; rm -f /tmp/full'
  done
}

ranks() { sed -n 's/^rank //p' <<< "$output" | sort -n; }

# Everything of a user in the places that all users share.
left_in_shared_places() { cluster at "$1" find /tmp /dev/shm -xdev -mindepth 1 -user "$2" ! -path "$cluster_dir*"; }

@test "two users' jobs on the same nodes at the same time do not meet" {
  local meeting=$cluster_dir/home/meeting user id ids=()
  mkdir -m 1777 "$meeting"
  # Each rank 0 listens on its port while the other does.
  cat > "$meeting/rank.py" << 'EOF'
import os, socket, sys, time
user, directory = os.environ["WHO"], os.path.dirname(__file__)
if os.environ["RANK"] == "0":
    listener = socket.create_server((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
    open(directory + "/" + user, "w").close()
    end = time.time() + 30
    while not all(os.path.exists(directory + "/" + other) for other in ("hpc", "other")):
        if time.time() > end:
            sys.exit("the other job did not start")
        time.sleep(0.05)
print("rank", os.environ["RANK"], os.uname().nodename, os.environ["CUDA_VISIBLE_DEVICES"], os.environ["MASTER_PORT"],
      os.environ.get("DDLRUN_RUN_DIR", "-"), flush=True)
EOF
  for user in hpc other; do
    printf '#!/bin/bash\nWHO=%s exec ddlrun python3 %s/rank.py\n' "$user" "$meeting" > "$cluster_dir/home/$user/meet"
    ids+=("$(cluster as "$user" env PATH="$cluster_dir/opt/bin:/usr/bin:/bin" sbatch --parsable -N2 --gres=gpu:2 --output="$cluster_dir/home/$user/meet.out" "$cluster_dir/home/$user/meet")")
  done
  for id in "${ids[@]}"; do wait_for 60 job_has_ended "$id"; done
  cat "$cluster_dir"/home/{hpc,other}/meet.out
  local ports=() directories=() gpus=()
  for user in hpc other; do
    output=$(cat "$cluster_dir/home/$user/meet.out")
    [ "$(ranks | cut -d' ' -f1,2 | tr '\n' ' ')" = "0 n1 1 n1 2 n2 3 n2 " ]
    gpus+=("$(ranks | cut -d' ' -f3 | sort -u)")
    ports+=("$(ranks | cut -d' ' -f4 | sort -u)")
    directories+=("$(ranks | head -n 1 | cut -d' ' -f5)")
  done
  [ "${gpus[*]}" = "0,1 2,3" ]
  [ "${ports[0]}" != "${ports[1]}" ]
  [ "${directories[0]}" != "${directories[1]}" ]
  for user in hpc other; do
    [ -z "$(left_in_shared_places n1 "$user")$(left_in_shared_places n2 "$user")" ]
  done
}

@test "links that another user has planted are not followed" {
  local next node
  hpc sh -c 'mkdir victim; echo precious > victim/file'
  next=$(($(hpc sbatch --parsable --output=/dev/null --wrap=true) + 1))
  for node in n1 n2; do
    cluster at "$node" setpriv --reuid other --regid other --clear-groups sh -c '
      cd /tmp
      for name in ddlrun ddlrun.XXXXXX ddlrun.log "spmix_appdir_5000.$2.0" "spmix_appdir_$2.0"; do ln -s "$1" "$name"; done' sh "$work/victim" "$next"
  done
  batch job -N2 --gres=gpu:2
  echo "$output"
  [ "$(ranks | wc -l)" -eq 4 ]
  [ "$(ls -A victim)" = file ]
  [ "$(cat victim/file)" = precious ]
}

@test "the directory of another user that keeps a daemon of mpirun from starting is named" {
  [[ $(mpirun --version 2> /dev/null) == *"(Open MPI) 4."* ]] || skip "that of Open MPI 5 has a process id in its name"
  sed -i 's/ddlrun/ddlrun --launcher=mpirun/' job
  cluster at n2 sh -c 'mkdir -m 700 /tmp/ompi.n2.5000; chown other /tmp/ompi.n2.5000'
  batch job -N2 --gres=gpu:2
  expect_status 69
  [[ $output == *", before any rank had started; if the network is well, "*"another user has /tmp/ompi.HOST.UID" ]]
  sed -i 's/mpirun/srun --check=full/' job
  batch job -N2 --gres=gpu:2
  [[ $output == *"/tmp/ompi.n2.5000 belongs to user "* ]]
}

@test "a /tmp that cannot be written" {
  cluster at n1 chmod 0555 /tmp
  cluster at n2 chmod 0555 /tmp
  batch job -N2 --gres=gpu:2
  expect_status 0
  [ "$(ranks | wc -l)" -eq 4 ]
  [[ $(ranks | head -n 1) == "0 n1 run_dir=/dev/shm/ddlrun."* ]]
  [ -z "$(left_in_shared_places n1 hpc)" ]
}

@test "a full /tmp" {
  cluster at n1 sh -c 'mount -o remount,size=1m /tmp; dd if=/dev/zero of=/tmp/full bs=64k 2> /dev/null; true'
  batch job -N1 --gres=gpu:2
  expect_status 71
  [[ $output == *"[ERROR DDL-20-71] cannot write /tmp/ddlrun."*"No space left on device"*"--run-dir DIR"* ]]
  [ -z "$(left_in_shared_places n1 hpc)" ]
}

@test "a TMPDIR that is nowhere" {
  sed -i '2i export TMPDIR=/nonexistent/tmp' job
  batch job -N2 --gres=gpu:2
  expect_status 0
  [ "$(ranks | wc -l)" -eq 4 ]
  [[ $(ranks | head -n 1) == "0 n1 run_dir=/tmp/ddlrun."* ]]
}
