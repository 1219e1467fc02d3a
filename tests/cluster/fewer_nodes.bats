#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Restarts on the nodes that are left (--min-nodes), on a real Slurm that declares a dead node down within seconds.

# shellcheck disable=SC2016 # the ranks' shells expand, not ours
# shellcheck disable=SC2030,SC2031,SC2154 # run and common.bash set them

load common

setup_file() {
  export CLUSTER_SLURM_CONF="SlurmdTimeout=5"
  start_cluster 4 1 4
  has_cluster || return 0
  "$DDLRUN_BUILD/bin/ddldata" synth --classes 4 --images 2048 --validation_images 400 --size 40 "$cluster_dir/data" > /dev/null
}
teardown_file() { stop_cluster; }
setup() { empty_home; }

all_idle() { [ "$(cluster in sinfo -h -N -o %t | sort -u)" = idle ]; }

# show_job: for a test that fails.  Fails.
show_job() {
  grep -v 'NVLOG\|^DLL' job.out
  cluster in sinfo -N
  cluster in squeue --steps
  false
}

# train FOLDER: a rank that notes what it sees of the job, and learns to tell images of four classes apart. The batch has 32 images,
# which three ranks do not divide.
train() {
  script rank 'echo "$RANK of $WORLD_SIZE" >> "ranks.$DDLRUN_RESTART_COUNT"' \
    "exec ddltraind --backend=cpu --arch=resnet_tiny --data_dir=$cluster_dir/data --classes=4 --image_size=32 --threads=1 --data_threads=1 \
--global_batch_size=32 --batch_size=8 --mode=train_and_evaluate --iter_unit=epoch --num_iter=8 --lr_init=2 --lr_warmup_epochs=1 --use_cosine_lr \
--augment=none --checkpoint_every=50 --hang_floor_seconds=2 --display_every=100000 --results_dir=$1"
}

# The top-1 accuracy that a job has found at its end, in tenths of a percent.
top1() { sed -n 's/.*evaluation of 400 images: top-1 \([0-9]*\)\.\([0-9]\).*/\1\2/p' "$1" | tail -n 1; }

# trained FOLDER STEP
trained() { [ -e "$1/checkpoints/step-000000$2" ]; }

@test "a training loses two of four nodes one after the other, and learns as well as one that loses none; nothing is queued again" {
  local id alone began=$SECONDS
  train whole
  script job 'ddlrun --end-limit 60 ./rank'
  batch job -N4 --gres=gpu:1
  [ "$status" -eq 0 ]
  alone=$(top1 job.out)

  rm job.out ranks.0
  train fewer
  script job 'ddlrun --max-restarts 2 --min-nodes 2 --requeue --progress-file fewer/checkpoints ./rank' 'echo "exit code $?"'
  id=$(hpc sbatch --parsable --no-kill --requeue -N4 --gres=gpu:1 --output="$work/job.out" job)
  wait_for 60 trained fewer 0100 || show_job
  cluster kill n3
  wait_for 90 grep -q 'restart 1 of 2' job.out || show_job
  wait_for 60 trained fewer 0300 || show_job
  cluster kill n2
  wait_for 90 grep -q 'restart 2 of 2' job.out || show_job
  wait_for 60 grep -q '^exit code' job.out || show_job
  grep -v 'NVLOG\|^DLL' job.out
  grep -q '^exit code 0' job.out
  grep -qx 'ddlrun: starting again, restart 1 of 2, without n3' job.out
  grep -qx 'ddlrun: \[WARN DDL-21-11\] 3 of the 4 nodes of this job are left, without n3: 3 ranks' job.out
  grep -qx 'ddlrun: starting again, restart 2 of 2, without n3, n2' job.out
  grep -qx 'ddlrun: \[WARN DDL-21-11\] 2 of the 4 nodes of this job are left, without n3, n2: 2 ranks' job.out
  [ "$(sort ranks.0)" = $'0 of 4\n1 of 4\n2 of 4\n3 of 4' ]
  [ "$(sort ranks.1)" = $'0 of 3\n1 of 3\n2 of 3' ]
  [ "$(sort ranks.2)" = $'0 of 2\n1 of 2' ]
  [ ! -e ranks.3 ]
  # 512 steps of 32 images, as on four nodes; the learning rate never jumped.
  trained fewer 0512
  run ! grep -q 'changed since step .*: images in a step' job.out
  grep -q 'changed since step .*: ranks 3 (now 2)' job.out
  hpc scontrol show job "$id" | grep -q ' Restarts=0 '
  echo "top-1 in tenths of a percent: $alone alone, $(top1 job.out) with fewer nodes; $((SECONDS - began)) s"
  [ "$alone" -ge 970 ] && [ "$(top1 job.out)" -ge 970 ]
  wait_for 10 nothing_left_on n1
  wait_for 10 nothing_left_on n4
  cluster boot n2
  cluster boot n3
  wait_for 60 all_idle
}

@test "fewer nodes than are enough: the job ends, and says how many are left" {
  script rank ': > "on.$(hostname)"' 'exec sleep 100'
  script job 'ddlrun --max-restarts 3 --min-nodes 2 ./rank' 'echo "exit code $?"'
  hpc sbatch --quiet --no-kill -N2 --gres=gpu:1 --output="$work/job.out" job
  wait_for 60 test -e on.n1 || show_job
  wait_for 60 test -e on.n2 || show_job
  cluster kill n2
  wait_for 90 grep -q '^exit code' job.out || show_job
  cat job.out
  grep -q 'not started again: 1 node is left, and --min-nodes is 2' job.out
  cluster boot n2
  wait_for 60 all_idle
}

@test "a job that has lost a node before its ranks start runs on those that are left, checked or not; with too few it is refused" {
  local options
  script rank 'echo "$RANK of $WORLD_SIZE" >> ranks'
  for options in '--max-restarts 1' '--check=full'; do
    rm -f ranks
    script job 'scontrol update JobId=$SLURM_JOB_ID NumNodes=3' "ddlrun $options --min-nodes 3 ./rank"
    batch job -N4 --gres=gpu:1
    expect_status 0
    [ "$(sort ranks)" = $'0 of 3\n1 of 3\n2 of 3' ]
    [[ $output == *"[WARN DDL-21-11] 3 of the 4 nodes of this job are left, without n4: 3 ranks"* ]]
  done
  [[ $output == *"[WARN DDL-21-7] n4 is left out: the job no longer has it"* ]]
  rm ranks
  script job 'scontrol update JobId=$SLURM_JOB_ID NumNodes=3' 'ddlrun --check=full --min-nodes 4 ./rank'
  batch job -N4 --gres=gpu:1
  [ "$status" -eq 78 ]
  [[ $output == *"job "*" has n[1-3] now, and no longer n4"* ]]
  [ ! -e ranks ]
}
