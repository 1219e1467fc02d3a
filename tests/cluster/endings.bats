#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# How jobs end where Slurm itself would take half a minute (KillWait=30, its default): when a rank has failed, when ranks leave
# something behind, when somebody else holds the output.

# shellcheck disable=SC2016 # the ranks' shells expand, not ours
# shellcheck disable=SC2154 # set by bats and common.bash

load common

setup_file() { CLUSTER_SLURM_CONF="KillWait=30" start_cluster 2 2 8; }
teardown_file() { stop_cluster; }
setup() { empty_home; }

# A job script's run COMMAND...: its exit code and whether it took more than 15 s, and what is then left on the two nodes.
run_function='run() { local start=$SECONDS; "$@"; echo "code $? $([ $((SECONDS - start)) -le 15 ] && echo in time)"
  srun -N2 --ntasks-per-node=1 --mpi=none pgrep -u hpc -x "sleep|ignores|forks" && echo "something is left"; rm -f ready.*; }'

@test "a rank fails: those that ignore SIGTERM get SIGKILL after the grace" {
  script ignores 'trap "" TERM; : > ready.$RANK; while :; do sleep 0.1; done'
  script rank '[ $RANK = 2 ] || exec ./ignores' 'until [ "$(echo ready.*)" = "ready.0 ready.1 ready.3" ]; do sleep 0.05; done' 'exit 3'
  script job "$run_function" 'for l in srun mpirun; do run ddlrun --launcher=$l ./rank; done'
  batch job -N2 --gres=gpu:2
  echo "$output"
  [ "$(grep -c '^code 3 in time' <<< "$output")" -eq 2 ]
  [ "$(grep -c 'rank 2 on n2 (pid [0-9]*) ended first, with exit code 3' <<< "$output")" -eq 2 ]
  [[ $output != *"something is left"* ]]
}

@test "what ranks leave behind is ended on every node, and does not hold the job" {
  script ignores 'trap "" TERM; : > ready.$RANK; while :; do sleep 0.1; done'
  script forks 'trap "" TERM; : > ready.$RANK; f() { (sleep 0.02; f) & exit; }; f'
  script rank 'case $KIND in' 'output) sleep 50 & ;;' 'session) setsid sleep 50 & ;;' 'deaf) setsid ./ignores & ;;' \
    'many) for i in {1..64}; do setsid sleep 50 & done ;;' 'forks) setsid ./forks & ;;' 'esac' \
    'case $KIND in deaf | forks) until [ -e ready.$RANK ]; do sleep 0.02; done ;; esac' 'exit ${CODE:-0}'
  script job "$run_function" 'for KIND in output session deaf many forks; do export KIND; run ddlrun --launcher=srun ./rank' \
    'run ddlrun --launcher=mpirun ./rank; run ddlrun --launcher=local -H n1 ./rank; done; CODE=3 run ddlrun -x CODE=3 ./rank'
  batch job -N2 --gres=gpu:1
  echo "$output"
  [ "$(grep -c '^code 0 in time' <<< "$output")" -eq 15 ]
  [ "$(grep -c '^code 3 in time' <<< "$output")" -eq 1 ]
  [[ $output != *"something is left"* ]]
}

@test "a process that cannot be ended is named once, with its host" {
  cp "$(command -v setpriv)" "$cluster_dir/opt/bin/become-root"
  chmod u+s "$cluster_dir/opt/bin/become-root"
  script rank '[ $RANK = 0 ] || setsid become-root --reuid=0 sleep 8 & sleep 0.5'
  script job 'for l in srun mpirun; do ddlrun --launcher=$l ./rank; echo "code $?"; done'
  batch job -N2 --gres=gpu:1
  echo "$output"
  [ "$(grep -c '^ddlrun-rank: rank 1 on n2 has left process [0-9]* (sleep), which SIGKILL does not end$' <<< "$output")" -eq 2 ]
  [ "$(grep -c '^code 0' <<< "$output")" -eq 2 ]
}

@test "a process of no rank that holds the output does not hold the job" {
  script rank '[ $RANK = 0 ] || exit 0' 'echo $$ > pid; until [ -e held ]; do sleep 0.05; done'
  script job 'for l in srun mpirun; do rm -f pid held; start=$SECONDS; ddlrun --launcher=$l ./rank & ddlrun=$!' \
    'until [ -s pid ]; do sleep 0.05; done; exec 3> "/proc/$(cat pid)/fd/1"; sleep 40 >&3 2>&3 & exec 3>&-; : > held; wait $ddlrun' \
    'echo "code $? $([ $((SECONDS - start)) -le 25 ] && echo in time)"; kill %-; done'
  batch job -N2 --gres=gpu:1
  echo "$output"
  [ "$(grep -c '^code 0 in time' <<< "$output")" -eq 2 ]
  [ "$(grep -cE '^ddlrun: all ranks have ended, but (srun|mpirun) has not, and was ended: ' <<< "$output")" -eq 2 ]
}

@test "a training whose rank is killed goes on at once" {
  local train="ddltraind --backend=cpu --arch=resnet_tiny --classes=10 --image_size=32 --batch_size=8 --threads=1 --mode=train \
--iter_unit=batch --num_iter=60 --checkpoint_every=10"
  script job 'for l in srun mpirun; do rm -rf r' \
    "ddlrun --launcher=\$l --max-restarts 1 $train --results_dir=r > out.\$l 2>&1 & ddlrun=\$!" \
    'until [ -e r/checkpoints/step-0000000020 ]; do sleep 0.05; done; start=$SECONDS; pkill -KILL -o -x ddltraind' \
    'until grep -q "resumed from" out.$l || ! kill -0 $ddlrun; do sleep 0.05; done' \
    'echo "$l $([ $((SECONDS - start)) -le 12 ] && echo in time)"; wait $ddlrun; echo "code $?"; cat out.$l; done'
  batch job -N2 --ntasks-per-node=2 --gres=gpu:2
  echo "$output"
  [[ $output == *"srun in time"*"code 0"*"mpirun in time"*"code 0"* ]]
  [ "$(grep -c '^ddlrun: starting again, restart 1 of 1' <<< "$output")" -eq 2 ]
  # The peers are no cause, though with Open MPI 5 some exit before the kernel has ended the killed one.
  [ "$(grep -c 'ended first, with signal 9 (Killed)' <<< "$output")" -eq 2 ]
}
