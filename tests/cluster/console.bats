#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The console of many ranks, tools around some, and ddlctl attach, on a real Slurm.

# shellcheck disable=SC2030,SC2031,SC2154 # run and common.bash set them

load common

setup_file() {
  part=launcher start_cluster 2 1 8
  has_cluster || return 0
  cmake --install "$build/ddlctl" --prefix "$cluster_dir/opt" > "$cluster_dir/log/install-ddlctl.log"
}

teardown_file() { stop_cluster; }

setup() { empty_home; }

@test "output of ranks on two nodes is tagged, left out and folded, and some ranks have a tool" {
  script job "ddlrun -n 4 --oversubscribe --tag-output='%r/%l@%h> ' --show-ranks 1-2 sh -c 'echo hello; head -c 3000 /dev/zero | tr \"\\0\" x; echo'"
  batch job -N2 --gres=gpu:1
  echo "$output"
  [ "$(grep hello <<< "$output" | grep -v '^+' | sort)" = $'1/1@n1> hello\n2/0@n2> hello' ]
  [ "$(grep -cE '^[12]/[01]@n[12]> x{3000}$' <<< "$output")" -eq 2 ]
  # They wait for each other: a line is folded with those of a second.
  script job "ddlrun -n 4 --oversubscribe --fold-output=numbers --wrap '0,3: env TOOL=%r' sh -c ': > here.\$RANK
until [ -e here.0 ] && [ -e here.1 ] && [ -e here.2 ] && [ -e here.3 ]; do sleep 0.1; done
echo loading; echo \"\${TOOL-none} of \$RANK\" >&2; echo step \$RANK'"
  batch job -N2 --gres=gpu:1
  echo "$output"
  grep -xF '[0-3] loading' <<< "$output"
  grep -xF '[0-3] step 0..3' <<< "$output"
  grep -xF '[1-2] none of 1..2' <<< "$output"
  grep -xF '[0,3] 0..3 of 0..3' <<< "$output"
  # A tool that is on no node.
  script job "ddlrun -n 2 --wrap '1: no-such-tool' true"
  batch job -N2 --gres=gpu:1
  echo "$output"
  [ "$status" -eq 69 ]
  [[ $output == *"rank 1 on n2: cannot start 'no-such-tool': No such file or directory"* ]]
  [[ ${output##*$'\n'} == *"; its error: cannot start 'no-such-tool': No such file or directory"* ]]
}

# attach RANK COMMAND...: $output and $status of it.
attach() { run hpc ddlctl attach "$job" "$@"; }

is_said() { grep -qF "ddlrun: somebody is attached to rank 1 on n2: " "$work/job.out"; }

@test "a command runs beside a rank from everywhere, and limits wait for it" {
  # Its heartbeat is never touched: alone the job would end 10 s after its start.
  script job "ddlrun --heartbeat beat%r --hang-after 1 -x ANSWER=42 sh -c 'echo \$\$ > next.\$RANK; mv next.\$RANK pid.\$RANK; until [ -e end ]; do sleep 0.1; done'"
  run hpc sbatch --parsable -N2 --gres=gpu:1 --nodelist=n1,n2 --time=2 --output=job.out "$work/job"
  [ "$status" -eq 0 ]
  job=$output
  wait_for 40 test -s "$work/pid.1"
  hpc ddlctl attach "$job" 1 sh -c ': > attached; exec sleep 100' 3>&- &
  local ddlctl_pid=$!
  wait_for 30 test -e "$work/attached"
  wait_for 10 is_said
  attach 1 sh -c 'echo "$(hostname) $RANK $ANSWER {pid} {rank} $PWD"; exit 7'
  echo "$output"
  [ "$status" -eq 7 ]
  grep -xF "n2 1 42 $(cat "$work/pid.1") 1 $work" <<< "$output"
  run hpc srun --overlap --jobid="$job" --nodelist=n2 -N1 -n1 --gres=none ddlctl attach "$job" 0 hostname
  echo "$output"
  grep -xF n1 <<< "$output"
  # A shell, at a terminal of its own on that node.
  run -7 hpc script -qec "ddlctl attach $job 1" /dev/null <<< 'echo "$(tty) $(hostname) rank $RANK"; exit 7'
  [[ $output == *"a shell beside rank 1, process "*" on n2; exit ends it"*"/dev/pts/"*" n2 rank 1"* ]]

  run -127 hpc ddlctl attach "$job" 0 no-such-program
  echo "$output"
  [[ $output == *"cannot start 'no-such-program' on n1 in the environment of rank 0: No such file or directory"* ]]
  attach 2 true
  echo "$output"
  [ "$status" -eq 64 ]
  [[ $output == *"there is no rank 2: the job has ranks 0 to 1"* ]]
  run cluster as other env PATH="$cluster_dir/opt/bin:/usr/bin:/bin" ddlctl attach "$job" 0 true
  echo "$output"
  [ "$status" -eq 69 ]
  sleep 8
  [[ $(hpc squeue -h -j "$job" -o %T) == RUNNING ]]
  kill "$ddlctl_pid"
  wait "$ddlctl_pid" || :
  : > "$work/end"
  wait_for 30 job_has_ended "$job"
  attach 0 true
  echo "$output"
  [ "$status" -eq 69 ]
  [[ $output == *"job $job is not running: its state is COMPLETED"* ]]
  wait_for 10 nothing_left_on n1
  wait_for 10 nothing_left_on n2
}
