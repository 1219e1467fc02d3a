#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The logs that other programs read. read_logs.py checks them by itself, from the public formats.

load common

# logs KIND FILE...: what read_logs.py finds in them.
logs() {
  python3 "$BATS_TEST_DIRNAME/read_logs.py" "$@"
}

@test "DLLogger: the options of the run, and the units" {
  expect=0 train 1 --num_iter=2 --mode=train --results_dir=run --weight_decay=0.25
  grep -qE '^DLL [0-9 :.-]+ - PARAMETER mode : train  .* weight_decay : 0\.25 ' <<< "$output"
  grep -q '"step": "PARAMETER", "data": {"mode": "train", .*"weight_decay": 0.25, ' run/log.json
  grep -q '"type": "METADATA", "metric": "imgs_per_sec", "metadata": {"unit": "images/s"}}' run/log.json
}

@test "DLLogger: what the launch was made with, in the file alone" {
  expect=0 train 2 --num_iter=2 --mode=train --results_dir='a run'
  sed -n 's/^DLLL \(.*"metric": "run".*\)/\1/p' 'a run/log.json' > launch
  [ "$(wc -l < launch)" -eq 1 ]
  [ "$(jq -r .metadata.program launch)" = "$("$ddltraind" --version | head -n 1)" ]
  [ "$(jq .metadata.ranks launch)" -eq 2 ]
  [ "$(jq .metadata.nodes launch)" -eq 1 ]
  [[ $(jq -r .metadata.command launch) == "ddltraind "*" '--results_dir=a run'"* ]]
  [[ $(jq -r .metadata.backend launch) == ?* && $(jq -r .metadata.communication launch) == ?* ]]
  [ "$(jq .metadata.job launch)" = null ]
  [[ $output != *METADATA* ]]
}

# on_terminal OUT COMMAND...: what a terminal gets on which COMMAND has its standard error, and with OUT "-" its output; its
# exit code behind it.
on_terminal() {
  python3 - "$@" << 'END'
import os, pty, subprocess, sys
master, slave = pty.openpty()
output = slave if sys.argv[1] == "-" else open(sys.argv[1], "w")
run = subprocess.Popen(["timeout", "60", *sys.argv[2:]], stdout=output, stderr=slave)
os.close(slave)
text = b""
try:
    while piece := os.read(master, 65536):
        text += piece
except OSError:  # nobody has the terminal any more
    pass
sys.stdout.write(text.decode().replace("\r\n", "\n") + f"{run.wait()}\n")
END
}

@test "on a terminal nothing is glued to the bar of the progress" {
  local options=("${small[@]}" --mode=train --num_iter=30)
  on_terminal - "$ddltraind" "${options[@]}" --results_dir=run > seen
  cat -v seen
  grep -q $'^\r.*step 1/30 .*\x1b\\[K$' seen # ended by what comes behind it
  grep -q '^:::NVLOGv0.2.3 resnet [0-9.]* ([a-z_.:0-9]*) iteration: 10$' seen
  run ! grep -E $'\x1b\\[K[^\r]' seen
  [ "$(tail -n 1 seen)" = 0 ]

  # A failure is said on a line of its own.
  on_terminal - "$ddltraind" "${options[@]}" --results_dir=failed --lr_init=1e30 > seen
  cat -v seen
  grep -q '^ddltraind: step 1: the weights are too large or NaN ' seen
  run ! grep -E $'\x1b\\[K[^\r]' seen
  [ "$(tail -n 1 seen)" = 70 ]

  # Where the output goes elsewhere nothing comes between.
  on_terminal out "$ddltraind" "${options[@]}" --results_dir=alone > seen
  cat -v seen
  [ "$(grep -c 'step [0-9]*/30 ' seen)" -eq 1 ]
  grep -q ' iteration: 10$' out
}

@test "the log of a run whose standard output is closed has its own lines alone" {
  "$ddltraind" --backend=cpu --arch=resnet_tiny --image_size=32 --batch_size=2 --iter_unit=batch --num_iter=2 --lr_warmup_epochs=0 \
    --threads=1 --mode=train --results_dir=run >&-
  grep -q '"PARAMETER"' run/log.json
  run ! grep -v '^DLLL ' run/log.json
}

@test "MLLOG: every key that the compliance checker of MLPerf asks for" {
  expect=0 train 2 --num_iter=30 --results_dir=run --mllog=mlperf.txt --mllog_org=Durham --mllog_platform=Bede --mllog_status=onprem
  logs mllog mlperf.txt
  # 200 images, 16 in a step: 12 steps in an epoch.
  [ "$(grep -c '"key": "epoch_start"' mlperf.txt)" -eq 3 ]
  grep -q '"key": "submission_org", "value": "Durham"' mlperf.txt
  grep -q '"key": "run_stop", .*"status": "success"' mlperf.txt
  top1=$(sed -n 's/.*Top-1 Accuracy: //p' <<< "$output")
  python3 -c "import json, sys
value = [json.loads(l[9:])['value'] for l in open('mlperf.txt') if 'eval_accuracy' in l][0]
sys.exit('%.3f' % (100 * value) != '$top1')"
}

@test "MLLOG: a training that does not come to its end is aborted, and the next launch adds a run" {
  expect=0 train 1 --num_iter=4 --run_iter=2 --results_dir=run --mllog=mlperf.txt
  grep -q '"key": "eval_accuracy"' mlperf.txt # as each launch ends
  grep -q '"key": "run_stop", .*"status": "aborted"' mlperf.txt
  # A launch that was killed in the middle of a line.
  mv mlperf.txt first
  printf ':::MLLOG {"namesp' > mlperf.txt
  expect=0 train 1 --num_iter=4 --results_dir=run --mllog=mlperf.txt
  sed -i 1d mlperf.txt
  logs mllog mlperf.txt
}

@test "MLLOG: misuse, 64; a file that cannot be written, 71; a full disk is said" {
  expect=64 train 2 --num_iter=2 --mode=train --results_dir=run --mllog=mlperf.txt
  [[ $messages == *"--mllog is the log of a training with its evaluation: it needs --mode=train_and_evaluate"* ]]
  [ ! -e run ]
  expect=71 train 2 --num_iter=2 --results_dir=run --mllog=nowhere/mlperf.txt
  [[ $messages == *"cannot write 'nowhere/mlperf.txt': No such file or directory; check it, or give another --mllog"* ]]
  [ ! -e run/checkpoints ]
  expect=0 train 1 --num_iter=2 --results_dir=run --mllog=/dev/full
  [ "$(grep -c "warning: /dev/full: lines are lost: No space left on device" <<< "$messages")" -eq 1 ]
  [[ $messages =~ "/dev/full: "[0-9]+" lines lost" ]]
}

# No promtool: what this project can check without it is checked.
promtool_takes() {
  command -v promtool > /dev/null || return 0
  promtool check metrics < "$1"
}

@test "Prometheus: a file of each rank, in two formats at once" {
  expect=0 train 2 --num_iter=30 --results_dir=run --prometheus_dir=metrics/of/run
  [ "$(ls -A metrics/of/run | sed 's/-[0-9a-f]\{8\}[.]prom$//')" = "$(printf 'ddltraind-rank-0000%s\n' 0 1)" ]
  for rank in 0 1; do
    file=$(compgen -G "metrics/of/run/ddltraind-rank-0000$rank-*.prom")
    promtool_takes "$file"
    logs metrics "$file" > values
    grep -q "^ddltraind_running{rank=\"$rank\",host=\"[^\"]*\",run=\"$PWD/run\"} 0\$" values
    grep -q "^ddltraind_steps{.*} 30\$" values
    grep -q "^ddltraind_planned_steps{.*} 30\$" values
    # 12 steps in an epoch
    grep -q "^ddltraind_finished_epochs{.*} 2\$" values
    grep -q "^ddltraind_global_batch_images{.*} 16\$" values
    grep -q "^ddltraind_evaluation_top1_ratio{" values
    [ "$(grep -c "^ddltraind_phase_seconds{.*,phase=" values)" -eq 5 ]
  done
}

@test "Prometheus: a rank that is killed leaves a whole file that says it runs" {
  start_training 1 --num_iter=100000000 --mode=train --results_dir=run --prometheus_dir=metrics
  wait_for 20 eval 'grep -qs "^ddltraind_steps{" metrics/ddltraind-rank-00000-*.prom'
  kill -9 "$(ranks_here 0)"
  end_of_training
  [ "$status" -ne 0 ]
  logs metrics metrics/ddltraind-rank-00000-*.prom | grep -q "^ddltraind_running{.*} 1\$"
}

@test "Prometheus: a directory that cannot be made, 71; one that is no more is said once" {
  expect=71 train 2 --num_iter=2 --results_dir=run --prometheus_dir=/proc/self/x
  [[ $messages == *"cannot make the directory '/proc/self/x': No such file or directory; give another --prometheus_dir"* ]]
  # Two runs of a node have files of their own, and what is in the way of one is a warning.
  expect=0 train 1 --num_iter=2 --results_dir=other --prometheus_dir=metrics
  expect=0 train 1 --num_iter=2 --results_dir=run --prometheus_dir=metrics
  [ "$(ls metrics | wc -l)" -eq 2 ]
  file=$(grep -l "run=\"$PWD/run\"" metrics/*)
  rm "$file"
  mkdir "$file"
  expect=0 train 1 --num_iter=3 --results_dir=run --prometheus_dir=metrics
  [[ $messages == *"$file: cannot be written: Is a directory; the run continues without its metrics there"* ]]

  start_training 1 --num_iter=2000 --mode=train --results_dir=run --prometheus_dir=lost
  wait_for 20 eval 'compgen -G "lost/ddltraind-rank-00000-*.prom" > /dev/null'
  rm -r lost
  expect=0 end_of_training
  [ "$(grep -c "warning: lost: cannot be written anew: No such file or directory; the run continues" err)" -eq 1 ]
}

@test "TensorBoard: scalars of every --display_every-th step and of the evaluation" {
  expect=0 train 2 --num_iter=30 --results_dir=run --tensorboard_dir=events/of/run
  file=$(echo events/of/run/events.out.tfevents.*)
  logs events "$file" > values
  [ "$(head -n 1 values)" = "0 session 1" ]
  for tag in train/{images_per_second,cross_entropy,l2_loss,total_loss,top1,learning_rate,gradient_norm,loss_scale} \
    seconds/{step,input_wait,forward,backward,exposed_all_reduce,update}; do
    [ "$(awk -v tag="$tag" '$2 == tag { printf "%s ", $1 }' values)" = "0 10 20 " ]
  done
  for tag in evaluation/{top1,top5,cross_entropy,images_per_second}; do
    [ "$(awk -v tag="$tag" '$2 == tag { printf "%s ", $1 }' values)" = "29 " ]
  done
  # The same numbers as in the other logs.
  losses=$(awk '$2 == "train/total_loss" { printf "%.5g ", $3 }' values)
  [ -n "$losses" ]
  [ "$losses" = "$(losses <<< "$output" | awk '{ printf "%.5g ", $1 }')" ]
}

@test "TensorBoard: a launch that goes on adds a file, and says from which step on it counts" {
  expect=0 train 1 --num_iter=4 --run_iter=2 --mode=train --results_dir=run --tensorboard_dir=events --display_every=1
  mkdir first
  mv events/* first/
  expect=0 train 1 --num_iter=4 --mode=train --results_dir=run --tensorboard_dir=events --display_every=1
  [ "$(logs events events/events.out.tfevents.* | awk '{ print $1 }' | sort -u | tr '\n' ' ')" = "2 3 " ]
  [ "$(logs events events/events.out.tfevents.* | head -n 1)" = "2 session 1" ]
}

@test "TensorBoard: a rank that is killed leaves whole events, then at most a part of one" {
  start_training 1 --num_iter=100000000 --mode=train --results_dir=run --tensorboard_dir=events --display_every=1
  wait_for 20 eval '[ "$(cat events/* 2> /dev/null | wc -c)" -gt 5000 ]'
  kill -9 "$(ranks_here 0)"
  end_of_training
  [ "$(logs events events/events.out.tfevents.* | grep -c total_loss)" -gt 5 ]
}

@test "TensorBoard: a directory that cannot be made, 71; a full disk is said, and the training goes on" {
  expect=71 train 2 --num_iter=2 --results_dir=run --tensorboard_dir=/proc/self/x
  [[ $messages == *"cannot make the directory '/proc/self/x': No such file or directory; give another --tensorboard_dir"* ]]
  [ ! -e run/checkpoints ]

  mkdir small
  mount -t tmpfs -o size=8k tmpfs small 2> mount.err || skip "no tmpfs can be mounted here"
  train 1 --num_iter=60 --mode=train --results_dir=run --tensorboard_dir=small --display_every=1
  cp small/events.out.tfevents.* lost_some
  umount small
  [ "$status" -eq 0 ]
  [ "$(grep -c "warning: small: events are lost: No space left on device; the run continues" <<< "$messages")" -eq 1 ]
  [[ $messages =~ "small/events.out.tfevents."[^\ ]*": "[0-9]+" events lost" ]]
  [ "$(logs events lost_some | grep -c train/total_loss)" -gt 5 ]
}

@test "trace: phases, all-reduces and input threads of all ranks on one time line" {
  expect=0 train 2 --num_iter=12 --mode=train --results_dir=run --trace=5:3 --data_threads=2
  [[ $messages == *"trace written: run/trace.json"* ]]
  [ ! -e run/.trace.json.tmp ]
  logs trace run/trace.json > values
  for rank in 0 1; do
    [ "$(awk -v rank=$rank '$1 == rank && $2 == "step" { printf "%s ", $3 }' values)" = "5 6 7 " ]
    for name in input_wait forward backward exposed_all-reduce update; do
      [ "$(grep -c "^$rank $name " values)" -eq 3 ]
    done
    [ "$(grep -c "^$rank all-reduce " values)" -ge 3 ]
    [ "$(grep -c "^$rank image " values)" -gt 8 ]
  done
}

@test "trace: steps that are not run are said; misuse, 64; a place that cannot be written, 71" {
  expect=0 train 1 --num_iter=4 --mode=train --results_dir=run --trace=5:3
  [[ $messages == *"warning: --trace writes nothing: steps 5 to 7 are not among the steps 1 to 4 of this launch"* ]]
  [ ! -e run/trace.json ]
  expect=64 train 2 --num_iter=4 --mode=train --results_dir=new --trace=5
  [[ $messages == *"--trace: needs STEP:COUNT, both from 1, COUNT up to 1000, such as 200:20, not '5'"* ]]
  expect=64 train 2 --mode=evaluate --results_dir=new --model_dir=run --trace=5:3
  [[ $messages == *"--trace shows the steps of a training: --mode=evaluate has none"* ]]
  mkdir -p new/trace.json
  expect=71 train 2 --num_iter=4 --mode=train --results_dir=new --trace=1:3
  [[ $messages == *"cannot write new/trace.json: it is a directory; give another --results_dir"* ]]
  [ ! -e new/checkpoints ]
}

# of_killed KIND... FILE: what read_logs.py finds in it, nothing where it has not come to be.
of_killed() {
  [ ! -e "${!#}" ] || logs "$@"
}

# Those of two ranks that were killed, each up to its last full line, and no step before it is missing.
every_log_parses() {
  local last_line last_event
  of_killed metrics metrics/ddltraind-rank-00000-*.prom > values
  of_killed metrics metrics/ddltraind-rank-00001-*.prom > values
  of_killed lines :::MLLOG mlperf.txt > entries
  of_killed json run/training.json
  of_killed trace run/trace.json > spans
  of_killed lines DLLL run/log.json > entries
  of_killed events "$(echo events/*)" > values
  sed -n 's/.*"step": \[[0-9]*, \([0-9]*\)\].*/\1/p' entries > steps
  awk '$2 == "train/total_loss" { print $1 }' values > events_of_steps
  [ -s steps ] || return 0
  last_line=$(tail -n 1 steps)
  last_event=$(tail -n 1 events_of_steps)
  diff steps <(seq 20 "$last_line")
  diff events_of_steps <(seq 0 "$last_event")
  # The line of a step is written before its event.
  [ "$last_event" -eq "$last_line" ] || [ "$last_event" -eq $((last_line - 1)) ]
}

@test "killed at any moment, each log parses up to its last full line" {
  for moment in 'test -s mlperf.txt' 'test -s "$(echo events/*)"' 'grep -qs "step.: .1, 2" run/log.json' \
    'compgen -G "run/trace.json*"' 'test -e run/trace.json' 'sleep 0.5' 'test -e run/training.json'; do
    echo "killed after: $moment"
    rm -rf run mlperf.txt events metrics
    start_training 2 --num_iter=100000000 --results_dir=run --mllog=mlperf.txt --tensorboard_dir=events \
      --prometheus_dir=metrics --trace=30:20 --display_every=1
    wait_for 20 eval "$moment"
    kill -9 $(ranks_here)
    end_of_training
    [ "$status" -ne 0 ]
    every_log_parses
  done
  ls run/{log,trace,training}.json mlperf.txt events/* metrics/ddltraind-rank-0000{0,1}-*.prom
  [ -s steps ]
}

# commented: one rank by hand as in job 4711, whose scontrol is the script on standard input.
commented() {
  mkdir -p bin
  cat > bin/scontrol
  chmod +x bin/scontrol
  SLURM_JOB_ID=4711 PATH=$PWD/bin:$PATH run_separate timeout 60 "$ddltraind" "${small[@]}" --mode=train --num_iter=3 \
    --results_dir=run --resume=never --backend=reference --job_comment
  echo "$messages"
}

@test "the comment of the job: by scontrol, once a minute" {
  commented << 'END'
#!/bin/bash
printf '%s\n' "$@" > scontrol.part
cat >> scontrol.part
mv scontrol.part scontrol.said
END
  [ "$status" -eq 0 ]
  [[ $messages != *job_comment* ]]
  # The only update is that of the first step; three take no minute.
  [ "$(head -n 3 scontrol.said)" = $'update\nJobId=4711\nComment=ddltraind step 1/3 loss '"$(sed -n 's/^Comment=.* loss \(.*\)/\1/p' scontrol.said)" ]
  [[ $(sed -n 3p scontrol.said) =~ ^Comment=ddltraind\ step\ 1/3\ loss\ [0-9.]+\ [0-9.]+\ images/s\ eta\ \?$ ]]
  [ "$(wc -l < scontrol.said)" -eq 3 ]
}

@test "the comment of the job: a training does not end for a scontrol that fails, hangs or is not there, nor outside of Slurm" {
  commented <<< $'#!/bin/bash\nexit 3'
  [ "$status" -eq 0 ]
  [ "$(grep -c "warning: --job_comment: the comment of the job may be an old one: scontrol ended with exit code 3" <<< "$messages")" -eq 1 ]
  rm -r run
  commented <<< $'#!/bin/bash\necho $$ > scontrol.pid; exec sleep 1000'
  [ "$status" -eq 0 ]
  [ ! -e "/proc/$(cat scontrol.pid)" ]
  rm -r run
  run -0 --separate-stderr timeout 60 env SLURM_JOB_ID=4711 PATH=/nowhere "$ddltraind" "${small[@]}" --mode=train --num_iter=1 \
    --results_dir=run --backend=reference --job_comment
  [[ $stderr == *"warning: --job_comment: the comment of the job may be an old one: scontrol: No such file or directory"* ]]
  rm -r run
  run --separate-stderr timeout 60 "$ddltraind" "${small[@]}" --mode=train --num_iter=1 --results_dir=run --backend=reference --job_comment
  [ "$status" -eq 0 ]
  [[ $stderr == *"warning: --job_comment: there is no Slurm job to comment on (SLURM_JOB_ID is not set)"* ]]
}
