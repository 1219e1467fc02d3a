#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# ddlrun --max-restarts on one machine, and what is refused.

load common

restarted() { run_ddlrun -n 2 --oversubscribe --launcher="${launcher:-local}" "$@"; }

# A program whose rank 1 fails as often as $1 says, with $2.
fails() { echo "echo \$RANK of run \$DDLRUN_RESTART_COUNT; [ \$RANK = 0 ] || [ \$DDLRUN_RESTART_COUNT -ge $1 ] || $2"; }

@test "ranks that fail start again, with the count, in a new run directory; the end is the last run's" {
  expect=0 restarted --max-restarts 3 sh -c "$(fails 2 'exit 3'); echo \$DDLRUN_RUN_DIR > directory\$DDLRUN_RESTART_COUNT"
  [ "$(grep -c '^1 of run [012]$' <<< "$output")" -eq 3 ]
  [[ $messages == *"ended first, with exit code 3, "*$'\n'"ddlrun: starting again in 2 s, restart 1 of 3"$'\n'"+ "* ]]
  [[ $messages == *"ddlrun: starting again in 8 s, restart 2 of 3"* ]]
  [ "$(cat directory0)" != "$(cat directory2)" ]
}

@test "the same through mpirun" {
  require_mpirun
  launcher=mpirun expect=0 restarted --max-restarts 1 sh -c "$(fails 1 'kill -KILL $$')"
  [[ $messages == *"rank 1 on "*" signal 9 (Killed)"*"starting again in 2 s, restart 1 of 1"* ]]
}

@test "the cause stays in the last line when restarts are used up" {
  expect=3 restarted --max-restarts 1 sh -c "$(fails 9 'exit 3')"
  [[ $messages == *"ddlrun: not started again: that was done 1 time already (--max-restarts)"$'\n'*"rank 1 on "*" ended first, with exit code 3, "*" s after the start" ]]
}

@test "three runs in a row without progress are the last" {
  expect=3 restarted --max-restarts 9 sh -c "$(fails 9 'exit 3')"
  [ "$(grep -c '^1 of run' <<< "$output")" -eq 3 ]
  [[ $messages == *"not started again: 3 runs in a row made no progress (shorter than 60 s, and no --progress-file tells better)"* ]]
}

@test "a file that becomes newer is progress; a half-written one is not" {
  mkdir checkpoints
  restarted --max-restarts 9 --progress-file checkpoints sh -c "echo > checkpoints/step-\$DDLRUN_RESTART_COUNT; $(fails 4 'exit 3')"
  [ "$status" -eq 0 ]
  [ "$(grep -c '^1 of run' <<< "$output")" -eq 5 ]
  restarted --max-restarts 9 --progress-file checkpoints sh -c "echo > checkpoints/.step-\$DDLRUN_RESTART_COUNT; $(fails 4 'exit 3')"
  [ "$status" -eq 3 ]
  [ "$(grep -c '^1 of run' <<< "$output")" -eq 3 ]
  [[ $messages == *"made no progress (nothing in --progress-file became newer)"* ]]
}

@test "a mistake is made once: 64, 65, 69, 78; so is an early stop" {
  for code in 64 65 69 78; do
    restarted --max-restarts 3 sh -c "$(fails 9 "exit $code")"
    [ "$status" -eq "$code" ]
    [[ $messages == *"not started again: exit code $code would come again"* ]]
  done
  expect=75 restarted --max-restarts 3 sh -c 'exit 75'
  [[ $messages != *"starting again"* ]]
}

@test "whoever is told to stop does not start again" {
  "$ddlrun" -n 1 --launcher=local --max-restarts 3 sh -c 'echo >> started; exec sleep 60' 2> messages 3>&- &
  local pid=$!
  wait_for 10 test -e started
  kill -TERM "$pid"
  expect=143 end_of "$pid"
  [ "$(wc -l < started)" -eq 1 ]
}

@test "a signal in the pause before a restart is the end, and is named" {
  "$ddlrun" -n 1 --launcher=local --max-restarts 3 sh -c 'echo >> started; exit 3' 2> messages 3>&- &
  local pid=$!
  wait_for 20 grep -q 'starting again in 8 s' messages
  kill -TERM "$pid"
  expect=3 end_of "$pid" messages
  [ "$(wc -l < started)" -eq 2 ]
  [ "$(tail -n 1 messages)" = "ddlrun: not started again: signal 15 (Terminated) came while no rank ran" ]
}

# refused CODE TEXT ARGUMENTS...
refused() {
  local code=$1 text=$2
  shift 2
  run_ddlrun "$@"
  echo "$status: $messages"
  [ "$status" -eq "$code" ]
  [ -z "$output" ]
  [[ $messages == *"ddlrun: [ERROR DDL-20-$code] "*"$text"* ]]
}

@test "numbers that are none" {
  refused 64 "a whole number from 0" --max-restarts -1 true
  refused 64 "a whole number from 0" --spare-nodes many true
  refused 64 "a whole number from 1" --requeue=0 true
  refused 64 "a whole number from 1" --min-nodes 0 --max-restarts 1 true
  refused 64 "a whole number from 1" --min-nodes few --max-restarts 1 true
}

@test "what needs Slurm, outside of it" {
  refused 64 "--spare-nodes needs the nodes of a Slurm job" --spare-nodes 1 --max-restarts 1 -H a,b true
  refused 64 "--min-nodes needs the nodes of a Slurm job: only Slurm says which is down" --min-nodes 1 --max-restarts 1 true
  refused 64 "--min-nodes does not go with -H" --min-nodes 1 --max-restarts 1 -H a,b true
  refused 78 "--requeue needs a batch job of Slurm" --requeue -n 1 true
}

@test "as many spare nodes as there are nodes, and spare nodes that no restart would use" {
  export SLURM_JOB_ID=7 SLURM_JOB_NODELIST='n[1-2]' SLURM_JOB_NUM_NODES=2 SLURM_GPUS_PER_NODE=4
  refused 78 "--spare-nodes 2 leaves none of the 2 nodes of this job: ask for more, #SBATCH -N3" --spare-nodes 2 --max-restarts 1 --dry-run true
  refused 64 "--spare-nodes without --max-restarts or --check=full" --spare-nodes 1 true
  expect=0 run_ddlrun --dry-run=json --spare-nodes 1 --check=full
}

@test "a least number of nodes: more than there are, of no use, beside a fixed number of ranks, without srun" {
  export SLURM_JOB_ID=7 SLURM_JOB_NODELIST='n[1-3]' SLURM_JOB_NUM_NODES=3 SLURM_GPUS_PER_NODE=2
  refused 78 "--min-nodes 4, but the ranks of this job start on 3 nodes: give a smaller number, or ask for more nodes, #SBATCH -N4" --min-nodes 4 --max-restarts 1 --dry-run true
  refused 78 "--min-nodes 3, but the ranks of this job start on 2 nodes: give a smaller number, or ask for more nodes, #SBATCH -N4" --min-nodes 3 --spare-nodes 1 --max-restarts 1 --dry-run true
  refused 64 "--min-nodes without --max-restarts or --check=full: no restart would ever use it; add --max-restarts 3" --min-nodes 2 true
  refused 64 "--min-nodes does not go with -n, which fixes the number of ranks: give --ranks-per-node" --min-nodes 2 --max-restarts 1 -n 6 true
  refused 64 "--min-nodes does not go with --nodes, --racks and --aisles" --min-nodes 2 --max-restarts 1 --racks 3 true
  refused 64 "--min-nodes needs srun to start the ranks, not local: only srun can do without a lost node" --min-nodes 2 --max-restarts 1 --launcher=local true
  expect=0 run_ddlrun --dry-run=json --min-nodes 3 --max-restarts 1
  run_ddlrun --launcher=local --min-nodes 3 --max-restarts 1 --dry-run true # no node can be lost
  [[ $messages != *--min-nodes* ]]
  export SLURM_HET_SIZE=2 SLURM_JOB_ID_HET_GROUP_0=7 SLURM_JOB_ID_HET_GROUP_1=8 SLURM_JOB_NODELIST_HET_GROUP_0=n1 SLURM_JOB_NODELIST_HET_GROUP_1=n2
  refused 64 "--min-nodes does not go with a heterogeneous job" --min-nodes 1 --max-restarts 1 --dry-run true
}

@test "a least number of nodes of the site: used where it can be, and no reason to refuse a job" {
  echo 'min_nodes: 2' > site.yaml
  run_ddlrun --site ./site.yaml --show-config --max-restarts 1
  grep -qE '^min_nodes: 2 +# \./site.yaml:1' <<< "$output"
  expect=0 run_ddlrun --site ./site.yaml --launcher=local -n 1 --max-restarts 1 echo ran
  run_ddlrun --site ./site.yaml --launcher=local --max-restarts 1 echo ran
  [ "$output" = ran ]
  export SLURM_JOB_ID=7 SLURM_JOB_NODELIST=n1 SLURM_JOB_NUM_NODES=1 SLURM_GPUS_PER_NODE=2
  expect=0 run_ddlrun --site ./site.yaml --dry-run=json --max-restarts 1
}

@test "a plan leaves the spare nodes out, and their tasks" {
  export SLURM_JOB_ID=7 SLURM_JOB_NODELIST='n[1-3]' SLURM_JOB_NUM_NODES=3 SLURM_GPUS_PER_NODE=2 SLURM_NTASKS=6 SLURM_TASKS_PER_NODE='2(x3)'
  expect=0 run_ddlrun --dry-run=json --spare-nodes 1 --max-restarts 1
  [ "$(python3 -c 'import json,sys; print(len(json.load(sys.stdin)["ranks"]))' <<< "$output")" = 4 ]
  [[ $output != *n3* ]]
}
