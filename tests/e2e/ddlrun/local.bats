#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# ddlrun with the local launcher: ranks without MPI.

load common

@test "DDL programs find what ddlrun of IBM gave them" {
  run_ddlrun -H localhost:2 --oversubscribe --launcher=local -m b -ddlarg '-dbg_level 1' \
    sh -c 'echo "$DDL_HOST_PORT|$DDL_HOST_LIST|$DDL_OPTIONS|"'
  [ "${lines[0]}" = "2200|localhost:0,1|-mode b:2x1x1x1 -dbg_level 1 |" ]
  run_ddlrun -n 1 -no_ddloptions sh -c 'echo "${DDL_OPTIONS-unset}"'
  [ "$output" = unset ]
}

@test "a program of ours that PATH has not is started from beside ddlrun, and no other" {
  mkdir first
  search_path=/usr/bin:/bin run_ddlrun -n 1 ddl-rankfile expand of-the-neighbour
  [ "$output" = of-the-neighbour ]
  printf '#!/bin/sh\necho "of PATH"\n' > first/ddl-rankfile
  chmod +x first/ddl-rankfile
  search_path=$PWD/first:/usr/bin:/bin run_ddlrun -n 1 ddl-rankfile expand of-the-neighbour
  [ "$output" = "of PATH" ]
  expect=69 search_path=/usr/bin:/bin run_ddlrun -n 1 ddl-rankfile-of-nobody
  [[ $messages == *"cannot start 'ddl-rankfile-of-nobody': No such file"* ]]
  # A rank may have another one of any other name, in a container.
  expect=69 search_path=/usr/bin:/bin run_ddlrun -n 1 bede-ddlrun --version
}

@test "the other name of the program is there" {
  run --separate-stderr "$DDLRUN_BUILD/bin/bede-ddlrun" -n 1 echo hello
  [ "$output" = hello ]
}

@test "a rank is bound to its own core and told its threads" {
  run_ddlrun -n 1 sh -c 'nproc; echo "$OMP_NUM_THREADS"'
  [ "${lines[0]}" = "${lines[1]}" ] || [ "$(lscpu | awk '/Thread\(s\) per core/ {print $4}')" -gt 1 ]
  if [ "$(nproc)" -ge 2 ]; then
    run_ddlrun -n 2 --launcher=local sh -c 'taskset -pc $$ | sed "s/.*: //"'
    [ "${lines[0]}" != "${lines[1]}" ]
  fi
  OMP_NUM_THREADS=7 run_ddlrun -n 1 sh -c 'echo "$OMP_NUM_THREADS"'
  [ "$output" = 7 ]
}

@test "--bind=none leaves ranks where they are" {
  run_ddlrun -n 1 --bind=none nproc
  [ "$output" = "$(nproc)" ]
}

@test "lines of different ranks do not mix" {
  expect=0 run_ddlrun -n 4 --oversubscribe --launcher=local --tag-output \
    sh -c 'i=0; while [ $i -lt 200 ]; do printf "%s-" $RANK $RANK; printf "$RANK\n"; i=$((i+1)); done'
  [ "${#lines[@]}" -eq 800 ]
  [ "$(sort <<< "$output" | uniq -c | sed 's/^ *//')" = "200 [0] 0-0-0
200 [1] 1-1-1
200 [2] 2-2-2
200 [3] 3-3-3" ]
}

@test "the second interrupt kills" {
  # Python, since a shell's background jobs ignore SIGINT from the start.
  run python3 - "$ddlrun" <<'PY'
import os, signal, subprocess, sys, time
run = subprocess.Popen([sys.argv[1], "-n", "1", "sh", "-c",
                        "trap 'echo > once' INT; echo > ready; while :; do sleep 0.05; done"],
                       stderr=subprocess.DEVNULL)
def wait_for(name):
    for _ in range(200):
        if os.path.exists(name): return
        time.sleep(0.05)
wait_for("ready"); run.send_signal(signal.SIGINT)
wait_for("once"); run.send_signal(signal.SIGINT)
print(run.wait(10))
PY
  [ "$output" = 137 ]
}

@test "two ddlruns at once do not meet" {
  "$ddlrun" -n 1 sh -c 'echo "$DDLRUN_RUN_DIR $MASTER_PORT"; echo > one; while [ ! -e two ]; do sleep 0.02; done' > first 2> /dev/null 3>&- &
  "$ddlrun" -n 1 sh -c 'echo "$DDLRUN_RUN_DIR $MASTER_PORT"; echo > two; while [ ! -e one ]; do sleep 0.02; done' > second 2> /dev/null 3>&- &
  wait
  [ -s first ] && [ -s second ]
  [ "$(cut -d' ' -f1 first)" != "$(cut -d' ' -f1 second)" ]
  [ "$(cut -d' ' -f2 first)" != "$(cut -d' ' -f2 second)" ]
}

@test "the run directory is private while it is there, and gone after" {
  run_ddlrun -n 1 sh -c 'stat -c %a "$DDLRUN_RUN_DIR"; ls "$DDLRUN_RUN_DIR"; echo "$DDLRUN_RUN_DIR"'
  [ "${lines[0]}" = 700 ]
  [ "${lines[*]:1:6}" = "HOSTFILE MACHINEFILE RANKFILE TASKFILE ddlrun.log plan.json" ]
  [ ! -e "${lines[6]}" ]
}

@test "--run-dir keeps the run directory" {
  mkdir runs
  expect=3 run_ddlrun -n 1 --run-dir runs sh -c 'exit 3'
  grep -q 'exit code 3' runs/ddlrun.*/ddlrun.log
  grep -q '"ddlrun-plan-1"' runs/ddlrun.*/plan.json
}

@test "output that nobody reads ends the job" {
  run bash -c "set -o pipefail; '$ddlrun' -n 1 --max-restarts 3 yes 2> messages | head -n 1"
  cat messages
  [ "$status" -eq 141 ]
  [ "$output" = y ]
  [ "$(tail -n 1 messages)" = "ddlrun: nobody reads the output any more, so the job was ended (exit code 141)" ]
}

@test "identities of an enclosing launcher do not reach ranks" {
  OMPI_COMM_WORLD_RANK=5 PMIX_RANK=5 SLURM_PROCID=5 RANK=5 run_ddlrun -n 1 \
    sh -c 'echo "$RANK ${OMPI_COMM_WORLD_RANK-} ${PMIX_RANK-} ${SLURM_PROCID-} ${DDLRUN_RANK_JOB-}"'
  [ "$output" = "0    " ]
}

@test "an upgrade between two starts of a job ends it, and is named" {
  mkdir bin
  cp "$DDLRUN_BUILD/bin/ddlrun" bin
  cp -r "$DDLRUN_BUILD"/{libexec,share} .
  # From the second start on, the shim is told of another version.
  mv libexec/ddlrun/ddlrun-rank libexec/ddlrun/ddlrun-rank.real
  ln -s ddlrun-rank-check libexec/ddlrun/ddlrun-rank.real-check
  printf '%s\n' '#!/bin/bash' '[ ! -e started ] || export DDLRUN_RANK_JOB="ddlrun=9.8.7 ${DDLRUN_RANK_JOB#* }"' 'exec "$0.real" "$@"' \
    > libexec/ddlrun/ddlrun-rank
  chmod +x libexec/ddlrun/ddlrun-rank
  ddlrun=$PWD/bin/ddlrun expect=78 run_ddlrun -n 1 --launcher=local --max-restarts=3 sh -c 'touch started; exit 3'
  [[ $messages == *", with exit code 3, "*"ddlrun-rank: [ERROR DDL-20-78] this node has ddlrun "*", but the job was started by ddlrun 9.8.7: "* ]]
  [[ $messages == *"ddlrun: not started again: exit code 78 would come again"* ]]
}

@test "--log-dir keeps what each rank prints, on both streams, beside showing it" {
  for launcher in $(LAUNCHERS='local mpirun' launchers); do
    expect=0 run_ddlrun --launcher="$launcher" --oversubscribe -n 2 --log-dir "logs/$launcher" sh -c 'echo out $RANK; echo err $RANK >&2'
    [ "$(sort <<< "$output")" = $'out 0\nout 1' ]
    [[ $messages == *"err 1"* ]]
    [ "$(sort "logs/$launcher/rank-00001.log")" = $'err 1\nout 1' ]
  done
}

@test "--heartbeat ends a program that hangs, names the rank, and starts it again" {
  # Each rank has touched its file when rank 1 hangs, the first time.
  printf '%s\n' '#!/bin/sh' 'for step in 1 2 3; do touch "$DDLRUN_HEARTBEAT"; sleep 0.2; done' \
    '[ "$RANK$DDLRUN_RESTART_COUNT" != 10 ] || { trap "" TERM; while :; do sleep 1; done; }' \
    'for step in 4 5 6 7; do touch "$DDLRUN_HEARTBEAT"; sleep 0.5; done' 'echo "$RANK is through"' > train
  chmod +x train
  for launcher in $(LAUNCHERS='local mpirun' launchers); do
    expect=0 run_ddlrun --launcher="$launcher" --oversubscribe -n 2 --heartbeat "beats.$launcher/%r" --hang-after 2 --max-restarts 1 ./train
    [[ $messages == *"the job failed: it hangs: rank 1 on "*" has not touched $PWD/beats.$launcher/1 for "[2-9]" s (--hang-after)"* ]]
    [ "$(sort -u <<< "$output")" = $'0 is through\n1 is through' ]
  done
}

@test "more ranks than the soft limit on open files has room for: ddlrun raises it, and ranks keep theirs" {
  (
    ulimit -Sn 64
    expect=0 run_ddlrun --launcher=local --oversubscribe -n 40 --log-dir logs sh -c 'ulimit -n'
    [ "$(sort <<< "$output" | uniq -c | tr -s ' ')" = ' 40 64' ]
  )
  (
    ulimit -n 64
    expect=71 run_ddlrun --launcher=local --oversubscribe -n 40 --log-dir logs sh -c 'echo > started'
    [[ $messages == *"[ERROR DDL-20-71] the pipes and logs of 40 ranks on one machine need 1"[0-9][0-9]" open files, and this process may have 64: "*"ulimit -n 1"* ]]
    [[ $messages != *"Too many open files"* ]]
    [ ! -e started ]
  )
}

@test "--hang-after without --heartbeat is refused" {
  expect=64 run_ddlrun --hang-after 5 true
  [[ $messages == *"--hang-after needs --heartbeat FILE"* ]]
}

@test "--stop-before sends its signal before the end of the job, and 75 comes of it" {
  for case in local:60 mpirun:60 local:60:USR2 mpirun:60:SIGUSR2; do
    launcher=${case%%:*} value=${case#*:} name=SIGUSR1
    [[ $value != *USR2 ]] || name=SIGUSR2
    [ "$launcher" = local ] || require_mpirun
    # 15 s for the ranks to start in. A signal that was not asked for shows.
    SLURM_JOB_END_TIME=$(($(date +%s) + 75)) run_ddlrun --launcher="$launcher" --oversubscribe -n 2 --stop-before "$value" --max-restarts 3 \
      bash -c 'for name in USR1 USR2; do trap "echo $RANK saves at SIG$name; exit 75" $name; done; while :; do sleep 0.05; done'
    expect_status 75 "$case: $status $output $messages"
    [ "$(sort <<< "$output")" = "0 saves at $name"$'\n'"1 saves at $name" ]
    [[ $messages == *"ddlrun: ranks got $name 60 s before the end of the job's time (--stop-before)"* ]]
  done
  for name in '' TERM 12 USR2:USR1 usr2; do
    expect=64 run_ddlrun --stop-before "60:$name" true
    [[ $messages == *"--stop-before"*"N, N:USR1, N:USR2 or USR1@N"* ]]
  done
}

@test "--stop-before where it cannot be is refused" {
  expect=78 run_ddlrun --stop-before 60 true
  [[ $messages == *"--stop-before 60: the end of this job is not known: neither SLURM_JOB_END_TIME nor 'scontrol show job' tells a time limit"* ]]
  SLURM_JOB_END_TIME=$(($(date +%s) + 30)) expect=78 run_ddlrun --stop-before 60 true
  [[ $messages == *"--stop-before 60: the job's time ends in "*" s already: give fewer seconds, or more #SBATCH --time"* ]]
  SLURM_JOB_END_TIME=$(($(date +%s) - 30)) run_ddlrun --stop-before 60 true
  [[ $messages == *"--stop-before 60: the job's time ends in 0 s already"* ]]
  expect=64 run_ddlrun --stop-before 60 ddltraind
  [[ $messages == *"--stop-before is for other programs: ddltraind stops before the end of its job by itself"* ]]
  expect=64 run_ddlrun --stop-before soon true
  [[ $messages == *"--stop-before"*"soon"* ]]
}

@test "ddlctl status tells what ddlrun knows of any program" {
  local ddlctl=$DDLRUN_BUILD/bin/ddlctl directory
  SLURM_JOB_END_TIME=$(($(date +%s) + 1000)) timeout 100 "$ddlrun" --launcher=local --oversubscribe -n 3 --run-dir=. --heartbeat 'beats/%r' \
    sh -c '[ "$RANK" != 2 ] || exit 75; until [ -e stop ]; do touch "$DDLRUN_HEARTBEAT"; sleep 0.1; done' 2> err 3>&- &
  wait_for 30 eval 'grep -qs "ended 75" ddlrun.*/status'
  directory=$(echo ddlrun.*)
  run "$ddlctl" status "$directory"
  expect_status 0
  [[ ${lines[0]} == "program        sh -c '["* ]]
  [[ $output == *"ddlrun         process "*" on $(uname -n), local"* ]]
  [[ $output == *"started        20"*" ago; 0 restarts"* ]]
  [[ $output == *"time limit     20"*", 0:1"[56]":"*" left"* ]]
  [[ $output == *"ranks          3 on 1 node: 2 running, 1 ended; rank 2 on "*": exit code 75"* ]]
  [[ $output == *"heartbeat      "*" s ago; longest ago rank "[01]" on "* ]]
  "$ddlctl" status --json "$directory" | python3 -c '
import json, sys
status = json.load(sys.stdin)
assert [rank["state"] for rank in status["ranks"]] == ["running", "running", "ended"], status
assert status["ranks"][0]["silence_seconds"] < 60 and not status["is_old"], status'
  touch stop
  wait
  # ddlrun is gone, its directory was kept.
  sed -i 's/^times [0-9.]*/times 1000000000/' "$directory/status"
  "$ddlctl" status "$directory" | grep -q '^old  *this was written .* ago: ddlrun is gone, or stopped'
  run -69 --separate-stderr "$ddlctl" status --srun=never 123456
  [[ $stderr == "ddlctl: no ddlrun of job 123456 runs here: ask on the node of its script, or give its run directory"*"for a directory write ./123456" ]]
  # squeue tells why there is none.
  mkdir bin
  printf '%s\n' '#!/bin/sh' 'echo "slurm_load_jobs error: Invalid job id specified" >&2' 'exit 1' > bin/squeue
  chmod +x bin/squeue
  run -69 --separate-stderr env PATH="$PWD/bin:$PATH" "$ddlctl" status 123456
  [ "$stderr" = "ddlctl: job 123456 is not found: slurm_load_jobs error: Invalid job id specified" ]
  # A directory with a file of this name that is the user's own is none of ddlrun's.
  echo "all is well" > "$directory/status"
  run -69 --separate-stderr "$ddlctl" status "$directory"
  [[ $stderr == "ddlctl: there is no training in $directory that can be asked"* ]]
  echo "ddlrun-status 9" > "$directory/status"
  run -65 --separate-stderr "$ddlctl" status "$directory"
  [[ $stderr == "ddlctl: $directory/status: a status of format 9, and this program reads format 2: use the version of ddlrun that has written it, or a newer one" ]]
}

@test "--end-limit ends a job in which a rank stays behind, and names it" {
  for launcher in $(LAUNCHERS='local mpirun' launchers); do
    for how in 0 75; do
      SECONDS=0
      run_ddlrun --launcher="$launcher" --oversubscribe -n 3 --end-limit 2 sh -c '[ $RANK != 1 ] || kill -STOP $$; echo $RANK is through; exit '"$how"
      echo "$launcher $how: $status $messages"
      [ $SECONDS -lt 40 ]
      [[ $output == *"0 is through"* && $output == *"2 is through"* ]]
      [[ $messages == *"its end hung: rank 1 on "*" did not end in time after the other ranks had (--end-limit)"* ]]
      [ "$status" -eq $((how == 0 ? 69 : 75)) ]
    done
  done
}

@test "without --end-limit a rank may go on for long after the others" {
  expect=0 run_ddlrun --launcher=local --oversubscribe -n 2 sh -c '[ $RANK = 0 ] || sleep 3; echo $RANK'
  [ "$output" = $'0\n1' ]
}

@test "--end-limit: an invalid number of seconds is an error" {
  expect=64 run_ddlrun --end-limit soon true
  [[ $messages == *"--end-limit"*"soon"* ]]
}

@test "--log-dir: a symbolic link instead of a log file is refused, and not followed" {
  mkdir logs
  ln -s "$PWD/elsewhere" logs/rank-00000.log
  for launcher in $(LAUNCHERS='local mpirun' launchers); do
    expect=71 run_ddlrun --launcher="$launcher" -n 1 --log-dir logs sh -c 'echo out'
    [[ $messages == *"logs/rank-00000.log: it is a symbolic link, which is not followed; remove it, or give another --log-dir"* ]]
    [ ! -e elsewhere ]
  done
}

@test "--log-dir: a FIFO instead of a log file is refused, be it read or not, and hangs nobody" {
  mkdir logs
  mkfifo logs/rank-00000.log
  for launcher in $(LAUNCHERS='local mpirun' launchers); do
    expect=71 run_ddlrun --launcher="$launcher" -n 1 --log-dir logs sh -c 'echo out'
    [[ $messages == *"logs/rank-00000.log: it is no file; remove it, or give another --log-dir"* ]]
  done
  exec 9<> logs/rank-00000.log
  run_ddlrun --launcher=local -n 1 --log-dir logs sh -c 'echo out'
  exec 9>&-
  [ "$status" -eq 71 ]
  [[ $messages == *"it is no file"* ]]
}

@test "--log-dir: a file in the way" {
  touch file
  expect=71 run_ddlrun -n 1 --log-dir file/logs true
  [[ $messages == "ddlrun: [ERROR DDL-20-71] cannot make the directory file/logs: Not a directory" ]]
}

@test "under nohup a hangup of ddlrun ends nothing; else it ends the ranks" {
  for launcher in $(LAUNCHERS='local mpirun' launchers); do
    nohup "$ddlrun" --launcher="$launcher" --oversubscribe -n 1 \
      sh -c 'echo > ready; while [ ! -e go ]; do sleep 0.05; done; echo over > end' > out 2>&1 3>&- &
    pid=$!
    wait_for 10 test -e ready
    kill -HUP "$pid"
    # By the time that another signal has been passed on the first would have been.
    kill -CONT "$pid"
    touch go
    expect=0 end_of "$pid" out
    [ "$(cat end)" = over ]
    rm ready end go
  done
  "$ddlrun" -n 1 sh -c 'trap "exit 9" HUP; echo > ready; while :; do sleep 0.05; done' > out 2>&1 3>&- &
  pid=$!
  wait_for 10 test -e ready
  kill -HUP "$pid"
  expect=9 end_of "$pid"
}

@test "closed standard streams are as good as empty ones" {
  for launcher in $(LAUNCHERS='local mpirun' launchers); do
    local options=("--launcher=$launcher" --oversubscribe -n 2 sh -c 'cat; echo "rank $RANK"; echo error >&2; echo x > "end$RANK"')
    bash -c '"$@" <&- > out 2> err' _ "$ddlrun" "${options[@]}"
    [ "$(sort out)" = $'rank 0\nrank 1' ]
    [ "$(grep -c '^error$' err)" -eq 2 ]
    bash -c '"$@" <&- >&- 2>&-' _ "$ddlrun" "${options[@]}"
    bash -c '"$@" >&- 2> err' _ "$ddlrun" "${options[@]}" < /dev/null
    [ "$(grep -c '^error$' err)" -eq 2 ]
    [ -e end0 ] && [ -e end1 ]
    rm end0 end1
  done
}

@test "CUDA_VISIBLE_DEVICES says which GPUs there are ranks for" {
  local four="$BATS_TEST_DIRNAME/../../fixtures/hwloc/ac922_16c_4v100.xml" list
  gpus() { jq -c '[.ranks[].gpu]' <<< "$output"; }
  run_ddlrun --dry-run=json --topology "$four" true
  [ "$(gpus)" = "[0,1,2,3]" ]
  for list in 0:'[0]' 3,1:'[3,1]' 0,7,1:'[0]' 2,-1,1:'[2]' :'[null]' -1:'[null]' 0,0:'[null]' GPU-1234:'[null]' MIG-a,MIG-b:'[null,null]'; do
    CUDA_VISIBLE_DEVICES=${list%%:*} expect=0 run_ddlrun --dry-run=json --topology "$four" true
    [ "$(gpus)" = "${list#*:}" ]
  done
  CUDA_VISIBLE_DEVICES=3,1 run_ddlrun --dry-run=json --topology "$four" --accelerators 1 true
  [ "$(gpus)" = "[3]" ]
  CUDA_VISIBLE_DEVICES=0 expect=78 run_ddlrun --dry-run --topology "$four" --accelerators 2 true
  [[ $messages == *"2 GPUs per node asked for, but CUDA_VISIBLE_DEVICES leaves 1: name more in it, or --accelerators 1" ]]
}

@test "GPUs are numbered by their place on the bus, unless the user says else" {
  run_ddlrun -n 1 sh -c 'echo "$CUDA_DEVICE_ORDER"'
  [ "$output" = PCI_BUS_ID ]
  CUDA_DEVICE_ORDER=FASTEST_FIRST run_ddlrun -n 1 sh -c 'echo "$CUDA_DEVICE_ORDER"'
  [ "$output" = FASTEST_FIRST ]
}

@test "--gpu-visibility=rank: each rank sees its own GPU alone, slices always" {
  local four="$BATS_TEST_DIRNAME/../../fixtures/hwloc/ac922_16c_4v100.xml"
  # visible LIST OPTIONS...: what each of two ranks sees where CUDA_VISIBLE_DEVICES is LIST; "-" for not set.
  visible() {
    local list=$1 launcher=$2
    shift 2
    rm -f rank?
    if [ "$list" = - ]; then unset CUDA_VISIBLE_DEVICES; else export CUDA_VISIBLE_DEVICES=$list; fi
    run_ddlrun --launcher="$launcher" --oversubscribe -n 2 --bind=none --topology "$four" "$@" sh -c 'echo "${CUDA_VISIBLE_DEVICES-unset}" > "rank$RANK"'
    unset CUDA_VISIBLE_DEVICES
    [ "$status" -eq 0 ] || echo "$messages"
    echo "$(cat rank0) $(cat rank1)"
  }
  for launcher in $(LAUNCHERS='local mpirun' launchers); do
    [ "$(visible 3,1 $launcher)" = "3,1 3,1" ]
    [ "$(visible 3,1 $launcher --gpu-visibility=all)" = "3,1 3,1" ]
    [ "$(visible 3,1 $launcher --gpu-visibility=rank)" = "3 1" ]
    [ "$(visible - $launcher --gpu-visibility=rank)" = "0 1" ]
    [ "$(visible GPU-aa,GPU-bb $launcher --gpu-visibility=rank)" = "GPU-aa GPU-bb" ]
    [ "$(visible - $launcher)" = "unset unset" ]
    [ "$(visible MIG-aa,MIG-bb $launcher)" = "MIG-aa MIG-bb" ]
    [ "$(visible MIG-aa,MIG-bb $launcher --gpu-visibility=all)" = "MIG-aa,MIG-bb MIG-aa,MIG-bb" ]
  done
  expect=64 run_ddlrun --gpu-visibility=node -n 1 true
  [[ $messages == *"option --gpu-visibility: 'node' is not auto or all or rank" ]]
  DDLRUN_GPU_VISIBILITY=rank run_ddlrun -n 1 sh -c 'echo "${DDLRUN_GPU_VISIBILITY-unset}"'
  [ "$output" = unset ]
}

@test "--ranks-per-node and --cpus-per-rank say how many ranks a node has, and how many CPUs a rank" {
  local four="$BATS_TEST_DIRNAME/../../fixtures/hwloc/ac922_16c_4v100.xml"
  per_node() { jq -c '[.ranks[].node] | group_by(.) | map(length)' <<< "$output"; }
  run_ddlrun --dry-run=json --topology "$four" --ranks-per-node 2 true
  [ "$(per_node)" = "[2]" ]
  run_ddlrun --dry-run=json --topology "$four" -H n1,n2 --accelerators 4 --ranks-per-node 3 true
  [ "$(per_node)" = "[3,3]" ]
  run_ddlrun --dry-run=json --topology "$four" -H n1,n2 --accelerators 4 --ranks-per-node 3 -n 4 true
  [ "$(per_node)" = "[3,1]" ]
  expect=78 run_ddlrun --dry-run=json --topology "$four" --ranks-per-node 5 true
  [[ $messages == *"5 ranks for 4 GPUs"* ]]
  # Four hardware threads to a core.
  run_ddlrun --dry-run=json --topology "$four" --cpus-per-rank 8 true
  [ "$(jq -r '.ranks[0].cpus' <<< "$output")" = 0-7 ]
  expect=78 run_ddlrun --dry-run=json --topology "$four" --cpus-per-rank 400 true
  [[ $messages == *"4 ranks need 100 cores each, but only 32 may be used: ask for less CPUs per rank, or add --oversubscribe"* ]]
  expect=64 run_ddlrun --ranks-per-node 0 true
  [[ $messages == *"option --ranks-per-node: '0' is not a whole number from 1 to 1000000" ]]
  expect=64 run_ddlrun --cpus-per-rank some true
  echo "rank 0=$(hostname) slot=0" > my.rankfile
  expect=64 run_ddlrun --rankfile my.rankfile --ranks-per-node 1 true
  [[ $messages == *"[ERROR DDL-20-64] --rankfile places and binds all ranks; leave --ranks-per-node and --cpus-per-rank out" ]]
}

@test "the beginning of a line is among the last lines of a rank that fails, and tags stand at the beginning of lines alone" {
  expect=3 run_ddlrun -n 1 --launcher=local sh -c 'echo one; printf two; exit 3'
  grep -A3 'last lines of rank 0' <<< "$messages"
  [[ $messages == *"| one"*"| two"* ]]
  run_ddlrun -n 1 --launcher=local --tag-output sh -c 'head -c 200000 /dev/zero | tr "\0" x; echo; echo'
  [ "$(tr -d x <<< "$output")" = $'[0] \n[0] ' ]
}

@test "a umask that takes rights from the user does not matter" {
  for mask in 0177 0277 0777 0077; do
    expect=0 run_separate sh -c "umask $mask; exec '$ddlrun' -n 2 --oversubscribe --launcher=local sh -c umask"
    [ "$output" = "$mask"$'\n'"$mask" ]
  done
}

@test "orders to stop reach ranks where ddlrun was started with signals blocked" {
  for launcher in $(LAUNCHERS='local mpirun' launchers); do
    for blocked in SIGALRM SIGTERM 'SIGALRM, signal.SIGCONT, signal.SIGTERM, signal.SIGUSR1'; do
      rm -f pid
      python3 -c "import os, signal, sys; signal.pthread_sigmask(signal.SIG_BLOCK, {signal.$blocked}); os.execv(sys.argv[1], sys.argv[1:])" \
        "$ddlrun" -n 1 --launcher="$launcher" env --block-signal=HUP --default-signal sh -c 'trap "exit 75" TERM; echo $$ > pid; while :; do sleep 0.1; done' \
        2> messages 3>&- &
      wait_for 10 test -s pid
      [ "$launcher" = mpirun ] || [ "$blocked" = SIGALRM ] || { kill -KILL $!; continue; } # ranks inherit what is blocked
      kill -TERM $!
      wait_for 10 have_ended $!
    done
  done
}

# with_name NAME COMMAND...: on a machine that has this name.
with_name() {
  unshare -u true 2> /dev/null || skip "no namespace can be made here"
  run_separate unshare -u sh -c 'printf %s "$0" > /proc/sys/kernel/hostname && exec "$@"' "$@"
}

@test "any name of the machine will do" {
  for name in '(none)' 'a b' -x _ 10.0.0.9 codespaces_3620e8 "$(printf '%063d' 0)" Übung; do
    expect=0 with_name "$name" "$ddlrun" -n 1 sh -c 'echo $RANK'
    expect=0 with_name "$name" "$ddlrun" -n 2 --oversubscribe sh -c 'echo $RANK'
  done
  require_mpirun
  mpirun_is_prrte && return
  for name in codespaces_3620e8 "$(printf '%063d' 0)"; do
    expect=69 with_name "$name" "$ddlrun" -n 2 --oversubscribe --launcher=mpirun true
    [[ $messages == *"takes no host named $name"*"--launcher=local"* ]]
  done
}
