#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What happens to ranks, nodes and ddlrun itself, on a real Slurm: the job ends in time, the cause is named, nothing is left.

# shellcheck disable=SC2016 # the ranks' shells expand, not ours
# shellcheck disable=SC2154 # set by bats and common.bash

load common

setup_file() { CLUSTER_SLURM_CONF=SlurmdTimeout=15 start_cluster 4 4 8; }
teardown_file() { stop_cluster; }
setup() { empty_home; }

# rank_does ACTION: a job of 2 x 2 ranks that wait, but rank 2, on n2, which does ACTION at once.
rank_does() {
  script job "ddlrun bash -c 'if [ \$RANK = 2 ]; then sleep 0.5; echo this is rank 2 >&2; $1; fi; sleep 100 & wait'" \
    'echo "exit code $?"'
  local start=$SECONDS
  batch job -N2 --gres=gpu:2
  [ $((SECONDS - start)) -le 20 ]
  nothing_is_left
}

nothing_is_left() {
  local node
  for node in n1 n2 n3 n4; do wait_for 10 nothing_left_on "$node"; done
  wait_for 10 no_run_directory
}

no_run_directory() {
  local node
  for node in n1 n2; do [ -z "$(cluster at "$node" find /tmp -maxdepth 1 -name 'ddlrun.*')" ] || return 1; done
}

# The line before the script's own.
verdict() { grep '^ddlrun: ' <<< "$output" | tail -n 1; }

@test "a rank that exits with 3 ends the job with 3 and is named last" {
  rank_does 'exit 3'
  [[ $output == *"exit code 3"* ]]
  [[ $(verdict) =~ "rank 2 on n2 (pid "[0-9]+") ended first, with exit code 3, " ]]
  [[ $output == *"this is rank 2"* ]]
}

@test "a rank that is killed by SIGKILL: 137" {
  rank_does 'kill -KILL $$'
  [[ $output == *"exit code 137"* ]]
  [[ $(verdict) == *"rank 2 on n2 "*" ended first, with signal 9 (Killed), "* ]]
}

@test "a rank that is killed by SIGSEGV: 139" {
  rank_does 'ulimit -c 0; kill -SEGV $$'
  [[ $output == *"exit code 139"* ]]
  [[ $(verdict) == *"rank 2 on n2 "*" ended first, with signal 11 (Segmentation fault), "* ]]
}

@test "the shim of a rank killed with it: the job ends, nothing is left" {
  rank_does 'kill -KILL $PPID; exec sleep 100' # a child of the rank would be lost to this Slurm (proctrack/linuxproc)
  [[ $output == *"exit code 137"* ]]
  [[ $(verdict) == *"rank 2 on n2 ended first, with signal 9 (Killed), "* ]]
}

@test "a program that is not there: 69, and it is named" {
  script job 'for i in 1 2 3; do ddlrun no-such-program; echo "exit code $?"; done'
  batch job -N2 --gres=gpu:1
  echo "$output"
  [ "$(grep -c '^exit code 69' <<< "$output")" -eq 3 ]
  [ "$(grep -cE "^ddlrun: .*the job failed: rank [01] on n[12] ended first" <<< "$output")" -eq 3 ]
  [ "$(grep -cE "rank [01] on n[12]: cannot start 'no-such-program': No such file or directory" <<< "$output")" -ge 3 ]
}

@test "what a rank prints is not taken for a line of srun, slurmstepd, mpirun or a shim" {
  cat > lines << 'EOF'
slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT ***
slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11-22T12:13:22 DUE TO TIME LIMIT ***
srun: Job step aborted: Waiting up to 32 seconds for job step to finish.
srun: error: Node failure on n2
srun: error: n2: task 1: Exited with exit code 5
srun: error: Timed out waiting for job step to complete
srun: Job 7 step creation temporarily disabled, retrying (Requested nodes are busy)
  Remote daemon: [[54533,0],1] on node n2
mpirun noticed that process rank 1 with PID 77 on node n2 exited on signal 9 (Killed).
srun returned non-zero exit status (9) from launching
ddlrun-rank: [ERROR DDL-20-78] rank 2 runs on n3, the plan says n2
EOF
  script rank 'cat lines >&2; printf "srun: error: no line end" >&2; sleep 0.3; exit $((RANK == 0 ? $1 : 0))'
  script job 'for code in 0 3; do for launcher in srun mpirun; do' \
    'ddlrun --launcher=$launcher ./rank $code; echo "$launcher: exit code $?, expected $code"; done; done'
  batch job -N2 --gres=gpu:1
  echo "$output"
  [ "$(grep -c 'exit code 0, expected 0' <<< "$output")" -eq 2 ]
  [ "$(grep -c 'exit code 3, expected 3' <<< "$output")" -eq 2 ]
  [ "$(grep -cE '^ddlrun: .*rank 0 on n1 \(pid [0-9]+\) ended first, with exit code 3' <<< "$output")" -eq 2 ]
  # Each of the four ranks that ended well has printed each line.
  while IFS= read -r line; do
    [ "$(sed '/^mpirun: exit code 0/q' <<< "$output" | grep -cF -e "$line")" -eq 4 ]
  done < lines
  [[ $output != *"output: "* ]]
}

# Jobs whose processes on n1 or n2 are meant are on these, where the job before may still be ending.
# signalled SIGNAL: a job, on $nodes, whose ranks write what they get; the signal goes to ddlrun alone.
signalled() {
  script rank 'trap "echo got $1 >> got.\$RANK; exit 75" "$1"' ': > "ready.$RANK"' 'while :; do sleep 0.1; done'
  script job "ddlrun ./rank $1 & echo \$! > pid; wait \$!" 'echo "exit code $?"'
  # shellcheck disable=SC2086 # many words
  hpc sbatch --quiet --output="$work/job.out" ${nodes:--N2 --nodelist=n1,n2 --gres=gpu:2} job
  wait_for 20 all_ready
  cluster at n1 kill "-$1" "$(pid_of_ddlrun)"
  wait_for 20 grep -q 'exit code' job.out
  output=$(cat job.out)
  nothing_is_left
}

# What the job script writes next to the start: on a machine that is busy, after the ranks are ready.
pid_of_ddlrun() { wait_for 10 test -s pid && cat pid; }

all_ready() { [ "$(find . -name 'ready.*' | wc -l)" -eq "${world:-4}" ]; }

@test "SIGTERM, SIGINT, SIGUSR1, SIGUSR2 and SIGHUP to ddlrun reach every rank; 75 from all is 75" {
  for signal in TERM USR1 USR2 INT HUP; do
    rm -f got.* ready.* pid job.out
    signalled "$signal"
    [ "$(cat got.0 got.1 got.2 got.3 | sort -u)" = "got $signal" ]
    [[ $output == *"exit code 75"* ]]
    [[ $output == *"stopped early with a checkpoint written (exit code 75)"* ]]
  done
}

# stopped_and_told COMMAND: a job of two ranks, which the command stops before ddlrun gets SIGTERM.
stopped_and_told() {
  rm -f ready.* pid job.out
  script rank 'echo $$ > "process.$RANK"' ': > "ready.$RANK"' 'exec sleep 300'
  script job 'ddlrun ./rank & echo $! > pid; wait $!' 'echo "exit code $?"'
  local job
  job=$(hpc sbatch --parsable -N2 --nodelist=n1,n2 --gres=gpu:1 --output="$work/job.out" job)
  world=2 wait_for 20 all_ready
  eval "$1"
  wait_for 10 is_stopped_on n1 0
  cluster at n1 kill -TERM "$(pid_of_ddlrun)"
  wait_for 20 grep -q 'exit code' job.out
  output=$(cat job.out)
  echo "$output"
  nothing_is_left
}

is_stopped_on() { cluster at "$1" grep -q '^State:.T' "/proc/$(cat "process.$2")/status"; }

@test "SIGTERM to ddlrun ends ranks that are stopped, and those whose shims are too" {
  stopped_and_told 'cluster at n1 kill -STOP "$(cat process.0)"; cluster at n2 kill -STOP "$(cat process.1)"'
  [[ $output == *"exit code 143"* ]]
  stopped_and_told 'hpc scancel --signal=STOP "$job.0"'
  [[ $output == *"exit code 143"* ]]
}

@test "a rank whose node lacks the directory of the job script's ddlrun is refused" {
  script job 'mkdir /tmp/only-here; cd /tmp/only-here || exit' 'ddlrun pwd' 'echo "exit code $?"' 'cd /; rmdir /tmp/only-here'
  batch job -w 'n[1-2]' --gres=gpu:1 # where the job before may still be ending
  echo "$output"
  [[ $output == *"[ERROR DDL-20-78] rank 1 on n2: this node has no working directory /tmp/only-here, where ddlrun was started: "* ]]
  [[ $output == *"exit code 78"* ]]
}

@test "SIGTERM reaches the ranks of every component of a heterogeneous job" {
  nodes="-N1 --gres=gpu:1 : -N2 --gres=gpu:2" world=5
  signalled TERM
  [ "$(cat got.* | sort | uniq -c)" = "      5 got TERM" ]
  [[ $output == *"exit code 75"* ]]
}

@test "srun killed by somebody else: that is said, and no rank goes on without it" {
  script rank ': > ready.$RANK' 'exec sleep 100'
  # Slurm ends what is left with the job, so that this goes on.
  script job 'ddlrun ./rank' 'echo "exit code $?"' 'until [ -e seen ]; do sleep 0.1; done'
  hpc sbatch --quiet -N2 --nodelist=n1,n2 --gres=gpu:2 --output="$work/job.out" job
  wait_for 30 all_ready
  cluster at n1 kill -KILL "$(cluster at n1 pgrep -u hpc -x -o srun)"
  wait_for 60 grep -q '^exit code' job.out
  wait_for 5 nothing_left_on n2
  : > seen
  output=$(cat job.out)
  echo "$output"
  [[ $output == *"exit code 137"* ]]
  [[ $(verdict) == *"the job failed: srun was ended by signal 9 (Killed), which is not ddlrun's doing; "* ]]
  nothing_is_left
}

@test "output whose reader has gone ends the job, and no rank is blamed" {
  script job 'ddlrun sh -c "while :; do echo a line; done" | head -n 1; echo "exit code ${PIPESTATUS[0]}"'
  batch job -N2 --gres=gpu:2
  echo "$output"
  [[ $output == *"exit code 141"* ]]
  [ "$(verdict)" = "ddlrun: nobody reads the output any more, so the job was ended (exit code 141)" ]
  nothing_is_left
}

@test "ddlrun killed by SIGKILL leaves no rank and no directory" {
  script job 'ddlrun sleep 100' 'echo "exit code $?"'
  hpc sbatch --quiet -N2 --nodelist=n1,n2 --gres=gpu:2 --output="$work/job.out" job
  wait_for 20 eval '! nothing_left_on n2'
  cluster at n1 kill -KILL "$(cluster at n1 pgrep -u hpc -x -o ddlrun)"
  wait_for 20 grep -q 'exit code 137' job.out
  nothing_is_left
}

# As with a control group: the guardian is killed, too.
@test "what a job leaves whose processes are all killed at once is removed by the next on that node" {
  script job 'ddlrun sleep 100'
  local id
  id=$(hpc sbatch --parsable -N2 --nodelist=n1,n2 --gres=gpu:2 --output="$work/job.out" job)
  wait_for 20 eval '! nothing_left_on n2'
  run ! no_run_directory
  hpc scancel --signal=KILL --full "$id"
  wait_for 60 job_has_ended "$id"
  cat job.out
  no_run_directory || echo "a run directory is left"
  script next 'ddlrun true'
  batch next -N1 --nodelist=n1 --gres=gpu:1
  [ "$status" -eq 0 ]
  nothing_is_left
}

@test "scancel ends everything" {
  script job 'ddlrun sleep 100'
  hpc sbatch --quiet -N4 --gres=gpu:4 --output="$work/job.out" job
  wait_for 20 eval '! nothing_left_on n4'
  hpc scancel --user=hpc
  nothing_is_left
}

@test "whoever ends the job is named, and no rank is blamed: SIGTERM to ddlrun, scancel of the step, scancel" {
  script rank ': > ready.$RANK' 'exec sleep 100'
  script job 'ddlrun ./rank & echo $! > pid; wait $!' 'echo "exit code $?"'
  local order id said
  for order in TERM step job; do
    rm -f ready.* pid job.out
    id=$(hpc sbatch --parsable -N4 --gres=gpu:2 --output="$work/job.out" job)
    world=8 wait_for 30 all_ready
    said="stopped by SIGTERM (exit code 143)"
    case $order in
      TERM) cluster at n1 kill -TERM "$(pid_of_ddlrun)" ;;
      step)
        hpc scancel "$id.0"
        said="cancelled by Slurm (exit code 137)"
        ;;
      job) hpc scancel "$id" ;; # which sends SIGTERM to ddlrun, too
    esac
    wait_for 30 grep -qE '^ddlrun: .*(\(exit code|ended first)' job.out
    output=$(cat job.out)
    echo "$order: $output"
    # A shim that the kill reaches a moment after its rank has reported that.
    [ "$(verdict)" = "ddlrun: $said" ] || [[ $order = step && $(verdict) == *" with signal 9 (Killed), "*", as Slurm cancelled the step: "* ]]
    nothing_is_left
    wait_for 30 all_idle
  done
}

@test "an order to stop while srun waits for the step of another one ends with 128 + the signal" {
  # With job control, since background processes ignore SIGINT without it.
  script job 'set -m' 'ddlrun sh -c ": > ready.0; exec sleep 100" & first=$!' 'until [ -e ready.0 ]; do sleep 0.1; done' \
    'for signal in TERM INT; do' ': > err; ddlrun echo runs 2> err & second=$!' \
    'until grep -q "^+ .*/srun " err; do sleep 0.1; done; sleep 1' \
    'kill -$signal $second; wait $second; echo "exit code $?"; tail -n 1 err; done' 'kill $first; wait $first'
  batch job -N1 --gres=gpu:1
  echo "$output"
  [[ $output == *$'exit code 143\nddlrun: stopped by SIGTERM (exit code 143)\nexit code 130\nddlrun: stopped by SIGINT (exit code 130)'* ]]
  [[ $output != *runs* ]]
  nothing_is_left
}

@test "a rank that fails by itself is named although Slurm then cancels the step" {
  rank_does 'kill -TERM $$'
  [[ $(verdict) == *"rank 2 on n2 "*" ended first, with signal 15 (Terminated), "* ]]
}

@test "output that nobody reads does not keep ranks from stopping" {
  script rank 'trap "echo stopping; echo saved > saved.\$RANK; exit 75" TERM' 'while :; do echo a line of $RANK; : > ready.$RANK; done'
  script job 'mkfifo unread' 'exec 7<> unread' 'ddlrun ./rank > unread 7>&- & echo $! > pid; wait $!; echo "exit code $?"'
  hpc sbatch --quiet -N2 --nodelist=n1,n2 --gres=gpu:2 --output="$work/job.out" job
  wait_for 30 all_ready
  wait_for 30 ranks_wait
  cluster at n1 kill -TERM "$(pid_of_ddlrun)"
  wait_for 30 grep -q '^exit code' job.out
  cat job.out
  grep -q '^exit code 75' job.out
  [ "$(cat saved.*)" = $'saved\nsaved\nsaved\nsaved' ]
  grep -qE '^ddlrun: [0-9]+ lines of output were dropped: nobody reads standard output$' job.out
  nothing_is_left
}

# Whether rank 0 is stopped in its write.
ranks_wait() {
  local before
  before=$(stat -c %y ready.0)
  sleep 0.5
  [ "$before" = "$(stat -c %y ready.0)" ]
}

@test "ddlrun waits for the end of a step that was killed, and says when Slurm cannot end it" {
  script rank ': > ready.$RANK' '[ $RANK = 0 ] || exec sleep 1000' 'while [ ! -e fail ]; do sleep 0.1; done' 'exit 3'
  hpc mkdir bin
  script bin/scancel 'echo "$*" >> scancel.log; /usr/bin/scancel "$@"; echo "$? $*" >> scancel.log'
  script job 'PATH=$PWD/bin:$PATH ddlrun ./rank' 'echo "exit code $?"'
  local id daemon
  id=$(hpc sbatch --parsable -N2 --nodelist=n1,n2 --gres=gpu:1 --output="$work/job.out" job)
  world=2 wait_for 30 all_ready
  daemon=$(cluster at n2 pgrep -f "slurmstepd: .$id.0")
  cluster at n2 kill -STOP "$daemon"
  : > fail
  wait_for 60 grep -q '^exit code' job.out
  cluster at n2 kill -CONT "$daemon"
  cat job.out scancel.log
  grep -q '^exit code 3' job.out
  grep -q "^ddlrun: step $id.0 was killed and is still there: " job.out
  grep -q "^--signal=9 $id.0" scancel.log
  # Slurm 24.11's waits for the answer of the daemon that is stopped, longer than ddlrun waits for scancel.
  [[ $(hpc srun --version) == *" 2"[4-9].* ]] || grep -q "^0 --signal=9 $id.0" scancel.log
  [[ $(output=$(cat job.out) verdict) == *"rank 0 on n1 "*" ended first, with exit code 3, "* ]]
  nothing_is_left
  wait_for 60 all_idle
}

@test "slurmctld restarted in mid-run harms nobody" {
  script job 'ddlrun sh -c "sleep 4; echo rank \$RANK"' 'echo "exit code $?"'
  hpc sbatch --quiet -N2 --nodelist=n1,n2 --gres=gpu:2 --output="$work/job.out" job
  wait_for 20 eval '! nothing_left_on n2'
  cluster ctld stop
  sleep 1
  cluster ctld start
  wait_for 30 grep -q 'exit code' job.out
  [[ $(cat job.out) == *"exit code 0"* ]]
  [ "$(grep -c '^rank ' job.out)" -eq 4 ]
  nothing_is_left
}

@test "SIGTERM ends everything in time while slurmctld is down" {
  script rank ': > ready.$RANK' 'sleep 1000'
  # Two nodes may be completing the job before for minutes, which slurmctld could not be told of: this one is on others then.
  script job 'hostname > host; ddlrun --max-restarts 3 ./rank & echo $! > pid; wait $!' 'echo "exit code $?"'
  hpc sbatch --quiet -N2 --gres=gpu:2 --output="$work/job.out" job
  wait_for 30 all_ready
  cluster ctld stop
  local start=$SECONDS
  # As Slurm and systemd send it.
  local pid
  pid=$(pid_of_ddlrun)
  cluster at "$(cat host)" sh -c "kill -TERM $pid; kill -CONT $pid"
  wait_for 60 grep -q '^exit code' job.out || true
  cluster ctld start
  echo "$((SECONDS - start)) s: $(cat job.out)"
  [ $((SECONDS - start)) -le 28 ]
  [[ $(output=$(cat job.out) verdict) == "ddlrun: stopped by SIGTERM (exit code 138)" ]]
  grep -q '^ddlrun: slurmctld did not pass the order to stop on: ranks got SIGUSR1$' job.out
  nothing_is_left
  wait_for 60 all_idle
}

@test "a node powered off ends the job; the other nodes are clean" {
  script job 'ddlrun sleep 100' 'echo "exit code $?"'
  hpc sbatch --quiet --no-requeue -N2 --gres=gpu:2 --output="$work/job.out" job
  wait_for 20 eval '! nothing_left_on n2'
  cluster kill n2
  wait_for 60 nothing_left_on n1
  wait_for 10 no_run_directory_on_n1
  cluster boot n2
  wait_for 60 all_idle
}

no_run_directory_on_n1() { [ -z "$(cluster at n1 find /tmp -maxdepth 1 -name 'ddlrun.*')" ]; }
all_idle() { [ "$(cluster in sinfo -h -N -o %t | sort -u)" = idle ]; }
