#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Every job script of slurm-templates on a real Slurm, changed as its first lines say: where the data are and, since the GPUs of these
# nodes are none, a smaller network on the CPU.

# shellcheck disable=SC2016 # the ranks' shells expand, not ours
# shellcheck disable=SC2030,SC2031,SC2154 # run and common.bash set them

load common

setup_file() {
  start_cluster 4 4 8
  has_cluster || return 0
  "$DDLRUN_BUILD/bin/ddldata" synth --classes 10 --images 256 --validation_images 64 --size 40 "$cluster_dir/data" > /dev/null
  start_modules
}

teardown_file() { stop_cluster; }

setup() { empty_home; }

# template NAME [OPTION OF DDLTRAIND...]: the installed template in the user's directory, changed as a user would.
template() {
  local name=$1
  shift
  sed -e "s|^data=.*|data=$cluster_dir/data|" \
    -e "/^options=($/,/^)$/c options=(--arch=resnet_tiny --classes=10 --image_size=32 --batch_size=8 --threads=1 --backend=cpu $*)" \
    "$cluster_dir/opt/share/ddlrun/slurm-templates/$name" > "$work/$name"
  chmod 755 "$work/$name"
}

# Apptainer, or what stands for it (tests/cluster/apptainer), where this machine lets users make namespaces.
has_apptainer() {
  command -v apptainer > /dev/null && return
  hpc unshare --user --map-root-user --mount true || skip "neither Apptainer nor unprivileged user namespaces"
  cp "$BATS_TEST_DIRNAME/apptainer" "$cluster_dir/opt/bin"
}

# submitted TEMPLATE [SBATCH OPTION...]: its exit code in $status, its log in $output.
submitted() {
  local name=$1
  shift
  run hpc sbatch --quiet --wait "$@" "$name"
  local code=$status
  [ "$code" -eq 0 ] || { echo "sbatch: exit code $code $output"; hpc scontrol show job | grep -E 'JobId|JobState|ExitCode'; }
  run cat ./*.log
  # What ended it comes before what else was printed, which a report of CI cuts short.
  [ "$code" -eq 0 ] || { tail -n 12 ./*.log | cut -c 1-300; }
  echo "$output"
  status=$code
}

@test "sbatch takes every template" {
  for path in "$cluster_dir"/opt/share/ddlrun/slurm-templates/*.sbatch; do
    case $path in
      # More nodes than this cluster has.
      */bede-resnet50-32.sbatch) hpc sbatch --test-only -N4 "$path" ;;
      *) hpc sbatch --test-only "$path" ;;
    esac
  done
}

@test "single-node and multi-node train with 4 and 16 ranks" {
  template single-node.sbatch --num_iter=2
  submitted single-node.sbatch
  [ "$status" -eq 0 ]
  [[ $output == *"Num GPUs: 4"*"Top-1 Accuracy"* ]]
  [ -e resnet50-N1/checkpoints/step-0000000016/manifest.json ]
  rm ./*.log
  template multi-node.sbatch --num_iter=2
  submitted multi-node.sbatch
  [ "$status" -eq 0 ]
  [[ $output == *"Num GPUs: 16"*"Top-1 Accuracy"* ]]
  [ -e resnet50-N4/checkpoints/step-0000000004/manifest.json ]
}

# bede_benchmark GPUS: the template for so many, with other data and a smaller network behind its own options, of which the
# last counts.
bede_benchmark() {
  local name=bede-resnet50-$1.sbatch
  sed "s|--use_static_loss_scaling\$|& --data_dir=$cluster_dir/data --arch=resnet_tiny --classes=10 --image_size=32 --batch_size=8 --threads=1 --backend=cpu --num_iter=2|" \
    "$cluster_dir/opt/share/ddlrun/slurm-templates/$name" > "$work/$name"
  chmod 755 "$work/$name"
  submitted "$name"
}

@test "Bede's benchmark on 1 and 4 GPUs: NVLOG lines in their order, training.json, and the accuracies as last lines" {
  local gpus keys
  for gpus in 1 4; do
    bede_benchmark $gpus
    [ "$status" -eq 0 ]
    [[ $output == *"(runner.py:373) Num GPUs: $gpus"* ]]
    keys=$(sed -n 's/^:::NVLOG.*(training_hooks.py:10[0-5]) \([a-z_0-9]*\):.*/\1/p' <<< "$output" | head -n 12 | tr '\n' ' ')
    [ "$keys" = "$(printf 'iteration imgs_per_sec cross_entropy l2_loss total_loss learning_rate %.0s' 1 2)" ]
    [[ $(grep '^:::NVLOG' <<< "$output" | tail -n 3) =~ \(runner.py:610\)\ Top-1\ Accuracy:\ [0-9.]+.*\(runner.py:611\)\ Top-5\ Accuracy:\ [0-9.]+.*Ending\ Model\ Evaluation\ \.\.\.$ ]]
    python3 -c "import json, sys
log = json.load(open('run_results-resnet50-$gpus/training.json'))
sys.exit(log['epoch']['x'] != [0, 1] or len(log['iter']['imgs_per_sec']) != 3)"
    rm ./*.log
  done
}

@test "interactive: a shell on the login node, and one on the first node of the job" {
  template interactive.sh
  run hpc ./interactive.sh <<< 'echo "shell on $(hostname)"; bede-ddlrun sh -c "echo rank \$RANK on \$(hostname)"'
  expect_status 0
  [[ $output == *"shell on ctl"* ]]
  for rank in 0 1 2 3; do [[ $output == *"rank $rank on n1"* ]]; done

  # A terminal is needed; script is one.
  run hpc script -qec './interactive.sh on-node -N2' /dev/null <<< 'echo "shell on $(hostname)"; bede-ddlrun sh -c "echo rank \$RANK on \$(hostname)"; exit'
  echo "$output"
  [[ $output == *"shell on n1"* ]]
  for rank in 0 1 2 3; do [[ $output == *"rank $rank on n1"* ]]; done
  for rank in 4 5 6 7; do [[ $output == *"rank $rank on n2"* ]]; done
}

@test "scaling: a task of the array for each number of nodes, and the table" {
  template scaling.sbatch --mode=training_benchmark --iter_unit=batch --num_iter=4 --warmup_steps=1
  submitted scaling.sbatch
  [ "$status" -eq 0 ]
  for nodes in 1 2 4; do
    grep -q "Num GPUs: $((4 * nodes))$" scaling-*-N$nodes.log
  done
  [ "$(grep -c train_throughput scaling-*.log | grep -c ':1$')" -eq 3 ]
}

# has_ended JOB STATE: whether the job is in this state; its record is in $output.
has_ended() {
  run hpc scontrol show job "$1"
  [[ $output == *"JobState=$2 "* ]]
}

@test "requeue: a training that is stopped before the time limit goes on by itself, and ends as if it had never stopped" {
  local job log
  # Steps of 70 ms on two idle cores: seven seconds in which the first step is seen and the signal sent.
  template requeue.sbatch --iter_unit=batch --num_iter=100 --checkpoint_every=20 --batch_size=32 --image_size=96
  job=$(hpc sbatch --parsable -N2 requeue.sbatch)
  log=resnet50-$job.log
  wait_for 60 grep -q 'step 1/' "$log"
  # What Slurm does for --signal=B:USR1@300.
  hpc scancel --batch --signal=USR1 "$job"
  wait_for 180 has_ended "$job" COMPLETED
  [[ $output == *" Restarts=1 "* ]]
  cat "$log"
  grep -q "stopped by signal 10 after step " "$log"
  grep -q "resumed from step " "$log"
  mv "resnet50-$job" turns

  job=$(hpc sbatch --parsable -N2 requeue.sbatch)
  wait_for 180 has_ended "$job" COMPLETED
  [[ $output == *" Restarts=0 "* ]]
  cmp {turns,"resnet50-$job"}/checkpoints/step-0000000100/model.safetensors
}

@test "requeue: scancel is the end of it" {
  local job
  template requeue.sbatch --iter_unit=batch --num_iter=100000
  job=$(hpc sbatch --parsable -N1 requeue.sbatch)
  wait_for 60 grep -q 'step 1/' "resnet50-$job.log"
  hpc scancel "$job"
  wait_for 30 has_ended "$job" CANCELLED
  [[ $output == *" Restarts=0 "* ]]
  wait_for 30 nothing_left_on n1
  has_ended "$job" CANCELLED
}

@test "container: one for each rank, with the rank's environment and the data inside" {
  has_apptainer
  # The smallest image: a shell and its libraries.
  mkdir -p train.sif/{bin,data,dev,etc,home,proc,root,sys,tmp,usr,var/tmp}
  cp -L /bin/sh train.sif/bin/
  ldd /bin/sh | grep -o '/[^ ]*' | while read -r library; do
    mkdir -p "train.sif$(dirname "$library")"
    cp -L "$library" "train.sif$library"
  done
  template container.sbatch
  sed -i "s|^program=.*|program=(sh -c 'echo \"rank \$RANK of \$WORLD_SIZE in \$APPTAINER_CONTAINER\"; echo /data/train-*')|" container.sbatch
  submitted container.sbatch -N2
  [ "$status" -eq 0 ]
  for rank in 0 1 2 3 4 5 6 7; do [[ $output == *"rank $rank of 8 in $work/train.sif"* ]]; done
  [[ $output == *"/data/train-00000-of-"* ]]
}

@test "containers that train: srun outside, and ranks with their MPI inside" {
  has_apptainer
  mkdir whole.sif # of this machine's root
  script train.sbatch '#SBATCH -N2' '#SBATCH --gres=gpu:2' "module load ddlrun" \
    'ddlrun apptainer exec --nv whole.sif sh -c '"'"'echo "in $APPTAINER_CONTAINER"; exec "$@"'"'"' sh ddltraind --backend=cpu --arch=resnet_tiny --classes=10 \
      --image_size=32 --batch_size=8 --threads=1 --mode=training_benchmark --num_iter=6 --iter_unit=batch --warmup_steps=2 --comm=mpi'
  sed -i '1s/$/ -l/' train.sbatch
  batch train.sbatch
  expect_status 0
  [ "$(grep -c "^in $work/whole.sif" <<< "$output")" -eq 4 ]
  [[ $output == *"MPI ("*", 4 ranks"*"median of 4 steps"* ]]
  # Ranks of a node are in user namespaces of their own, where Open MPI may not read the other's memory: it copies by another way.
  run ! grep 'errno = ' <<< "$output"
}

@test "a Python environment that is active in the script is the one that ranks on every node run in" {
  hpc python3 -m venv --without-pip "$work/my env"
  script train.sbatch "export PATH=$cluster_dir/opt/bin:\$PATH" '. "my env/bin/activate"' 'export OMP_NUM_THREADS=1' \
    'bede-ddlrun python -c "import os, sys; open(sys.argv[1] + os.environ[\"RANK\"], \"w\").write(\" \".join([sys.prefix, os.environ[\"VIRTUAL_ENV\"], os.environ[\"OMP_NUM_THREADS\"]]))" rank'
  batch train.sbatch -N2 --gres=gpu:4
  expect_status 0
  for rank in 0 1 2 3 4 5 6 7; do
    [ "$(cat rank$rank)" = "$work/my env $work/my env 1" ]
  done
  # Slurm then tells srun to hand on nothing of the script's environment either.
  rm rank?
  batch train.sbatch -N2 --gres=gpu:4 --export=NONE
  expect_status 0
  [ "$(cat rank7)" = "$work/my env $work/my env 1" ]
}
