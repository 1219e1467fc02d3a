#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Going on after a failure, on a real Slurm: ranks start again in the allocation, a spare node takes the place of a lost one, the
# job is queued again.

# shellcheck disable=SC2016 # the ranks' shells expand, not ours
# shellcheck disable=SC2030,SC2031,SC2154 # run and common.bash set them

load common

setup_file() { CLUSTER_SLURM_CONF=SlurmdTimeout=15 start_cluster 3 2 4; }
teardown_file() { stop_cluster; }
setup() { empty_home; }

train="ddltraind --backend=cpu --arch=resnet_tiny --classes=10 --image_size=32 --batch_size=8 --threads=1 --mode=train --iter_unit=batch --num_iter=60 --checkpoint_every=10"

# has_ended JOB STATE: whether the job is in this state; its record is in $output.
has_ended() {
  run hpc scontrol show job "$1"
  [[ $output == *"JobState=$2 "* ]]
}

# For a test that fails: what the job and Slurm say.  Fails.
show_job() {
  cat job.out
  cluster in sinfo -N
  cluster in squeue
  false
}

@test "a training whose rank is killed starts again, goes on, and ends as if nothing had been" {
  script job "ddlrun --max-restarts 2 --progress-file killed/checkpoints $train --results_dir=killed & ddlrun=\$!" \
    'until [ -e killed/checkpoints/step-0000000020 ]; do sleep 0.05; done' 'pkill -KILL -o -x ddltraind' 'wait $ddlrun'
  batch job -N2 --gres=gpu:1
  expect_status 0
  [[ $output == *"rank 0 on n1 (pid "*" ended first, with signal 9 (Killed), "*$'\n'"ddlrun: starting again, restart 1 of 2"$'\n'*"resumed from step "* ]]

  script job "ddlrun $train --results_dir=whole"
  batch job -N2 --gres=gpu:1
  [ "$status" -eq 0 ]
  cmp {killed,whole}/checkpoints/step-0000000060/model.safetensors
}

# Each node takes 1.5 kWh from one reading to the next (tests/launcher/health/fake_nvml.cc).
@test "the energy of the GPUs of all nodes, over a restart, by every launcher" {
  mkdir lib
  cp "$DDLRUN_BUILD/tests/libfake_nvml.so" lib/libnvidia-ml.so.1
  local launcher
  for launcher in srun mpirun hydra; do
    [ $launcher != hydra ] || command -v mpiexec.hydra > /dev/null || continue
    [ $launcher != mpirun ] || command -v mpirun > /dev/null || continue
    script job 'export LD_LIBRARY_PATH=$PWD/lib FAKE_NVML=energy' \
      "ddlrun --launcher=$launcher --max-restarts 1 --progress-file none sh -c 'sleep 1; [ \$DDLRUN_RESTART_COUNT = 1 ] || [ \$RANK != 1 ] || exit 3'"
    batch job -N2 --gres=gpu:2
    expect_status 0
    # Hydra may end before it has read what a node said last.
    [[ $output == *", energy 6.00 kWh, 3.00 of it lost" ||
      ($launcher = hydra && $output == *", energy at least 4.50 kWh, 1.50 of it lost") ]]
  done
  nothing_left_on n2
}

@test "a spare node takes the place of one that is powered off" {
  script rank ': > "on.$DDLRUN_RESTART_COUNT.$(hostname)"' '[ "$DDLRUN_RESTART_COUNT" -gt 0 ] || exec sleep 100'
  script job 'ddlrun --max-restarts 1 --spare-nodes 1 ./rank' 'echo "exit code $?"'
  local id
  id=$(hpc sbatch --parsable --no-kill -N3 --gres=gpu:1 --output="$work/job.out" job)
  wait_for 60 test -e on.0.n2 || show_job
  [ ! -e on.0.n3 ]
  cluster kill n2
  wait_for 90 has_ended "$id" COMPLETED || show_job
  [ -e on.1.n1 ] && [ -e on.1.n3 ]
  grep -q 'the job failed: node n2 was lost' job.out
  grep -q 'starting again in 2 s, restart 1 of 1, without n2' job.out
  grep -q '^exit code 0' job.out
  wait_for 10 nothing_left_on n1
  wait_for 10 nothing_left_on n3
  cluster boot n2
  wait_for 60 all_idle
}

all_idle() { [ "$(cluster in sinfo -h -N -o %t | sort -u)" = idle ]; }

@test "without a spare the job is queued again" {
  script rank ': > "on.$DDLRUN_RESTART_COUNT.$(hostname)"' ': > progress' '[ "$DDLRUN_RESTART_COUNT" -gt 0 ] || exec sleep 100'
  script job 'exec ddlrun --requeue --progress-file progress ./rank'
  local id
  id=$(hpc sbatch --parsable --no-kill -N2 --gres=gpu:1 --open-mode=append --output="$work/job.out" job)
  wait_for 60 test -e on.0.n2 || show_job
  cluster kill n2
  # Slurm takes 16 to 40 s, and on a busy machine longer, to declare a node down.
  wait_for 90 grep -q 'requeueing the job' job.out || show_job
  wait_for 60 has_ended "$id" COMPLETED
  [ -e on.1.n1 ] && [ -e on.1.n3 ]
  cluster boot n2
  wait_for 60 all_idle
}

# A rank that stops early at the first SIGUSR1.
stops_early() {
  script rank 'trap "exit 75" USR1' 'echo "run $DDLRUN_RESTART_COUNT" > "count.$RANK.$DDLRUN_RESTART_COUNT"' \
    '[ "$DDLRUN_RESTART_COUNT" -lt 2 ] || exit 0' "${1:-:}" 'while :; do sleep 0.1; done'
}

# A job that was submitted from within the task of an array has that one's variables, and the user may have defaults for scancel.
@test "an early stop is requeued with the count; the ranks' count is that of the job" {
  stops_early ': > "checkpoints/step-$DDLRUN_RESTART_COUNT"'
  hpc mkdir checkpoints
  script job 'export SLURM_ARRAY_JOB_ID=999999 SLURM_ARRAY_TASK_ID=0 SCANCEL_STATE=PENDING' \
    'exec ddlrun --requeue --progress-file checkpoints --log-dir logs ./rank'
  local id
  id=$(hpc sbatch --parsable -N2 --gres=gpu:1 --open-mode=append --output="$work/job.out" job)
  for turn in 0 1; do
    wait_for 30 test -e "count.1.$turn"
    wait_for 30 test -e "count.0.$turn"
    # What Slurm does for --signal=B:USR1@300.
    hpc scancel --batch --signal=USR1 "$id"
  done
  wait_for 60 has_ended "$id" COMPLETED
  cat job.out
  [[ $output == *" Restarts=2 "* ]]
  [ "$(grep -c 'ddlrun: requeueing the job' job.out)" -eq 2 ]
  # Each launch has its file, and Slurm's time in the queue is lost.
  run hpc ddlctl history logs
  echo "$output"
  [[ $output == "start "*" 75"$'\n'*" 75 "*"requeued "*$'\n'*" 0 "*"requeued "*$'\n'"sum "*"requeued "* ]]
  wait_for 10 nothing_left_on n1
}

@test "an early stop without progress is the end, and scancel is" {
  stops_early
  script job 'exec ddlrun --requeue --max-restarts 3 ./rank'
  local id
  id=$(hpc sbatch --parsable -N1 --gres=gpu:1 --open-mode=append --output="$work/job.out" job)
  wait_for 20 test -e count.0.0
  hpc scancel --batch --signal=USR1 "$id"
  wait_for 30 has_ended "$id" FAILED
  [[ $output == *" Restarts=0 "*" ExitCode=75:0"* ]]
  grep -q 'not requeued: this run made no progress (shorter than 60 s, and no --progress-file tells better)' job.out

  rm -f count.* job.out
  stops_early ': > checkpoint'
  sed -i 's/" USR1/" USR1 TERM/' rank
  script job 'ddlrun --requeue --max-restarts 3 --progress-file checkpoint ./rank'
  id=$(hpc sbatch --parsable -N2 --gres=gpu:1 --open-mode=append --output="$work/job.out" job)
  wait_for 20 test -e count.1.0
  hpc scancel "$id"
  wait_for 30 nothing_left_on n1
  has_ended "$id" CANCELLED
  [[ $output == *" Restarts=0 "* ]]
  run ! grep -q 'requeueing\|starting again' job.out
}

@test "ranks do not start again in the last minute of the job" {
  script job 'ddlrun --max-restarts 3 sh -c "sleep 2; exit 3"'
  batch job -N1 --gres=gpu:1 --time=1
  expect_status 3
  [[ $output =~ "not started again: the time limit of the job is "[0-9]+" s away" ]]
}

@test "a training that fails three times without a checkpoint is not started a fourth time" {
  script job "ddlrun --max-restarts 9 $train --results_dir=none --checkpoint_every=0 --threads=1 --num_iter=1000000 & ddlrun=\$!" \
    'while kill -0 $ddlrun; do pkill -KILL -o -x ddltraind; sleep 0.2; done' 'wait $ddlrun'
  batch job -N1 --gres=gpu:1
  expect_status 137
  [[ $output == *"not started again: 3 runs in a row made no progress (no new checkpoint in none/checkpoints)"* ]]
}

@test "a job that may not be requeued is refused at its start" {
  script job 'ddlrun --requeue true'
  batch job -N1 --gres=gpu:1 --no-requeue
  [ "$status" -eq 78 ]
  [[ $output == *"--requeue: Slurm may not requeue this job (--no-requeue, or JobRequeue=0 in slurm.conf): write #SBATCH --requeue"* ]]
  run hpc salloc --quiet -N1 --gres=gpu:1 ddlrun --requeue true
  [ "$status" -eq 78 ]
  [[ $output == *"--requeue needs a batch job, and this is one of salloc or srun"* ]]
}

@test "a node that is taken from the job while it runs: a spare one takes its place, else the job ends" {
  local spares
  for spares in 1 0; do
    rm -f ready
    script job "ddlrun --max-restarts 1 --spare-nodes $spares sh -c 'echo rank \$RANK \$(hostname) \$DDLRUN_RESTART_COUNT; [ \$DDLRUN_RESTART_COUNT = 1 ] || { : > ready; sleep 60; }' &" \
      'until [ -e ready ]; do sleep 0.1; done' "scontrol update JobId=\$SLURM_JOB_ID NodeList=n1,n$((2 + spares)) > /dev/null" 'wait %1'
    batch job -N3 --gres=gpu:1
    echo "$output"
    if [ "$spares" -eq 1 ]; then
      [ "$status" -eq 0 ]
    else
      [ "$status" -eq 137 ]
    fi
  done
}
