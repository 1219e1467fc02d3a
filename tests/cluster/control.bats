#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# ddlctl on a real Slurm: from the job, from the login node and from another node, which reach rank 0 by srun --overlap.

# shellcheck disable=SC2030,SC2031,SC2154 # run and common.bash set them

load common

setup_file() {
  start_cluster 3 1 8
}

teardown_file() { stop_cluster; }

setup() { empty_home; }

# The training of $job is in its midst.
is_training() { [ "$(hpc ddlctl status "$work/run" 2> /dev/null | sed -n 's/^state  *//p')" = training ]; }

@test "a training on two nodes is asked from everywhere, and stops" {
  script train "ddlrun ddltraind --arch=resnet_tiny --classes=10 --image_size=32 --batch_size=4 --threads=1 --backend=cpu \
    --iter_unit=batch --num_iter=1000000 --display_every=1000 --mode=train --results_dir=run --checkpoint_every=0"
  run hpc sbatch --parsable -N2 --gres=gpu:1 --nodelist=n1,n2 --time=9 --output=train.out "$work/train"
  [ "$status" -eq 0 ]
  local job=$output
  wait_for 60 is_training
  # From the login node.
  run hpc ddlctl status "$work/run"
  echo "$output"
  [[ $output == *"rank 0         process "*" on n1, job $job"* ]]
  # Slurm 22.05 does not tell the job itself its end.
  run hpc ddlctl status "$job"
  echo "$output"
  [[ $output == *"time limit     2"*T*", 0:0"*" left"* ]]
  # From the node of rank 0, and from another one.
  run hpc srun --overlap --jobid="$job" --nodelist=n1 -N1 -n1 --gres=none ddlctl pause "$work/run"
  echo "$output"
  [[ $output == *"paused after step "* ]]
  run hpc srun --overlap --jobid="$job" --nodelist=n2 -N1 -n1 --gres=none ddlctl checkpoint "$work/run"
  echo "$output"
  [[ $output == *"the checkpoint of step "*" is written"* ]]
  # Where both ranks are.
  run hpc ddlctl stacks "$work/run"
  expect_status 0
  [[ $output == *"rank"*" 0 on n1"*"(2 of 2): in a pause, after step "* || $output == *"rank 0 on n1 (1 of 2): in a pause, after step "* ]]
  [[ $output == *"1 on n2"* ]]
  # One that is stopped, on the other node, is named.
  local hung
  hung=$(cluster at n2 pgrep -x ddltraind)
  cluster at n2 kill -STOP "$hung"
  run hpc ddlctl stacks "$work/run"
  echo "$output"
  cluster at n2 kill -CONT "$hung"
  [ "$status" -eq 69 ]
  [[ $output == *"rank 1 on n2 has not answered within 11 s: stopped, or its node or file system is out of reach"* ]]
  [[ $output == *"rank 0 on n1 (1 of 2): in a pause, after step "* ]]
  run hpc ddlctl resume "$work/run"
  [[ $output == *"resumed after step "* ]]
  # Without srun it says where to go.
  run hpc ddlctl stop --srun=never "$work/run"
  [ "$status" -eq 69 ]
  [[ $output == *"the training runs on n1, not on this machine: log in to n1 and type: ddlctl stop --srun=never "* ]]
  # Another user reaches nothing.
  chmod 755 "$work"
  run cluster as other env PATH="$cluster_dir/opt/bin:/usr/bin:/bin" ddlctl stop "$work/run"
  echo "$output"
  [ "$status" -ne 0 ]
  is_training
  run hpc ddlctl stop "$work/run"
  echo "$output"
  [[ $output == *"stopped after step "*", with the checkpoint of step "* ]]
  wait_for 30 job_has_ended "$job"
  [ "$(hpc ddlctl status "$work/run" | sed -n 's/^state  *//p')" = "done" ]
  wait_for 10 nothing_left_on n1
  wait_for 10 nothing_left_on n2
}

@test "the status of a job with any program, from everywhere; its ranks hear of its end by themselves" {
  script beat "ddlrun --heartbeat 'beats/%r' --stop-before 60 sh -c '
    trap \"exit 75\" USR1
    [ \$RANK != 1 ] || exit 75
    while :; do touch \$DDLRUN_HEARTBEAT; sleep 0.2; done'" 'echo "code $?"'
  run hpc sbatch --parsable -N2 --gres=gpu:1 --nodelist=n1,n2 --time=2 --output=beat.out "$work/beat"
  [ "$status" -eq 0 ]
  local job=$output
  has_status() { hpc ddlctl status "$job" 2> /dev/null | grep -q "1 running, 1 ended; rank 1 on n2: exit code 75"; }
  wait_for 30 has_status
  # From the login node, from the node of rank 0, and from another one.
  run hpc ddlctl status "$job"
  echo "$output"
  [[ $output == "job            $job"$'\n'"program        sh -c "* ]]
  [[ $output == *"ddlrun         process "*" on n1, srun"* ]]
  [[ $output == *"ranks          2 on 2 nodes: 1 running, 1 ended; rank 1 on n2: exit code 75"* ]]
  [[ $output == *"heartbeat      "*" s ago; longest ago rank 0 on n1: "* ]]
  local node
  for node in n1 n2; do
    run hpc srun --overlap --jobid="$job" --nodelist=$node -N1 -n1 --gres=none ddlctl status --json "$job"
    echo "$output"
    [[ $output == *"\"job\":\"$job\""*"\"state\":\"running\""* ]]
  done
  run hpc ddlctl status --srun=never "$job"
  [ "$status" -eq 69 ]
  [[ $output == *"no ddlrun of job $job runs here: ask on the node of its script"* ]]
  # Another user sees nothing.
  run cluster as other env PATH="$cluster_dir/opt/bin:/usr/bin:/bin" ddlctl status "$job"
  [ "$status" -ne 0 ]
  # The end is told a minute before the two are over, without --signal.
  wait_for 100 job_has_ended "$job"
  cat "$work/beat.out"
  grep -q "ddlrun: ranks got SIGUSR1 60 s before the end of the job's time (--stop-before)" "$work/beat.out"
  grep -q "^code 75" "$work/beat.out"
  run hpc ddlctl status "$job"
  [ "$status" -eq 69 ]
  wait_for 10 nothing_left_on n1
  wait_for 10 nothing_left_on n2
}

# Rank 1 on n2, which is stopped, holds up rank 0 on n1, which waits for it; $job is theirs.
has_reason() { [[ $(hpc ddlctl why "$job") == "rank 1 (n2, pid $(cat "$work/pid.1")): stopped by SIGSTOP"*"; 1 other rank waits"* ]]; }

@test "the last line of a job that hung says which rank of two nodes held it up" {
  script hung "mkfifo fifo" "ddlrun --heartbeat 'beats/%r' --hang-after 2 --log-dir logs python3 -c '
import os, socket, time
for i in range(3):
    open(os.environ[\"DDLRUN_HEARTBEAT\"], \"w\").write(str(i))
    time.sleep(0.5)
if os.environ[\"RANK\"] == \"1\": open(\"fifo\")
pair = socket.socketpair(); pair[0].recv(1)'"
  batch hung -N2 --gres=gpu:1 --nodelist=n1,n2 --time=2
  echo "$output"
  [ "$status" -eq 70 ]
  [[ $output == *"it hangs: rank "[01]" on "n[12]" has not touched "*" (--hang-after); rank 1 (n2, pid "*"): opens the FIFO $work/fifo, whose other end nobody opens"*"; 1 other rank waits"* ]]
  grep -q '"cause":"opens"' "$work/logs/why.json"
  wait_for 10 nothing_left_on n1
  wait_for 10 nothing_left_on n2
}

@test "which rank of two nodes hangs is known from everywhere, by the job and by the run directory" {
  script hang "ddlrun python3 -c '
import os, signal, socket
print(os.getpid(), file=open(\"pid.\" + os.environ[\"RANK\"], \"w\"))
if os.environ[\"RANK\"] == \"1\": os.kill(os.getpid(), signal.SIGSTOP)
pair = socket.socketpair(); pair[0].recv(1)'"
  run hpc sbatch --parsable -N2 --gres=gpu:1 --nodelist=n1,n2 --time=2 --output=hang.out "$work/hang"
  [ "$status" -eq 0 ]
  local job=$output
  wait_for 40 has_reason || {
    hpc ddlctl why -v "$job"
    return 1
  }
  run hpc ddlctl why -v "$job"
  echo "$output"
  [[ ${lines[2]} == *" 0 n1 "*" S "* && ${lines[3]} == *" 1 n2 "*" T "* ]]
  # From another node of the job, and by the directory on that of ddlrun, where the facts are left.
  run hpc srun --overlap --jobid="$job" --nodelist=n2 -N1 -n1 --gres=none ddlctl why "$job"
  echo "$output"
  [[ $output == "rank 1 (n2, "* ]]
  local directory
  directory=$(cluster at n1 sh -c 'echo /tmp/ddlrun.*')
  run hpc srun --overlap --jobid="$job" --nodelist=n1 -N1 -n1 --gres=none ddlctl why "$directory"
  echo "$output"
  [[ $output == "rank 1 (n2, "* ]]
  cluster at n1 grep -q '"cause":"stopped"' "$directory/why.json"
  run hpc srun --overlap --jobid="$job" --nodelist=n1 -N1 -n1 --gres=none ddlctl why --srun=never "$directory"
  echo "$output"
  [[ $output == *"; rank 1 was not looked at: ask on n2 too" ]]
  # Another user sees nothing.
  run cluster as other env PATH="$cluster_dir/opt/bin:/usr/bin:/bin" ddlctl why "$job"
  [ "$status" -ne 0 ]
  hpc scancel "$job"
  wait_for 30 job_has_ended "$job"
  wait_for 10 nothing_left_on n1
  wait_for 10 nothing_left_on n2
}

# is_stopped RANK: on node n1 or n2.
is_stopped() { cluster at "n$(($1 + 1))" grep -q '^State:.T' "/proc/$(cat "$work/pid.$1")/status"; }
goes_on() { ! is_stopped "$1"; }

@test "Ctrl-Z at the terminal of salloc stops the ranks of all nodes, and fg has them go on" {
  script at_terminal 'ddlrun sh -c '\''echo $$ > pid.$RANK; until [ -e end ]; do sleep 0.1; done'\' \
    'echo "stopped $?"; until [ -e go ]; do sleep 0.1; done; fg; echo "code $?"'
  mkfifo "$work/keys"
  # shellcheck disable=SC2094 # what is typed, and what is shown
  limit=120 hpc env --default-signal=INT,QUIT salloc --quiet -N2 --gres=gpu:1 --nodelist=n1,n2 \
    script -qec 'bash -m ./at_terminal' /dev/null < "$work/keys" > "$work/shown" 2>&1 3>&- &
  local terminal=$!
  exec 9> "$work/keys"
  wait_for 30 test -s "$work/pid.0"
  wait_for 30 test -s "$work/pid.1"
  printf '\032' >&9
  wait_for 20 grep -q 'stopped 148' "$work/shown"
  is_stopped 0
  is_stopped 1
  : > "$work/go"
  wait_for 20 goes_on 0
  wait_for 20 goes_on 1
  : > "$work/end"
  wait_for 30 grep -q '^code' "$work/shown"
  exec 9>&-
  wait "$terminal" || :
  cat "$work/shown"
  grep -q '^code 0' "$work/shown"
}
