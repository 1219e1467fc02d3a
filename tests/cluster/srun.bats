#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# ddlrun inside a real Slurm: one script, every kind of allocation, each rank where the plan has it.

# shellcheck disable=SC2016 # the ranks' shells expand, not ours
# shellcheck disable=SC2154 # set by bats and common.bash

load common

setup_file() { start_cluster 4 4 8; }
teardown_file() { stop_cluster; }
setup() {
  empty_home
  script job 'ddlrun "$@" sh -c "echo rank \$RANK/\$WORLD_SIZE \$(hostname) \$LOCAL_RANK/\$LOCAL_WORLD_SIZE gpus=\$CUDA_VISIBLE_DEVICES"'
}

# Who ran where, in order: rank, node, local rank, GPUs that it sees.
ranks() { sed -n 's/^rank //p' <<< "$output" | sort -n; }

# on NODE COUNT FIRST WORLD GPUS: the lines of COUNT ranks on a node.
on() {
  local i
  for ((i = 0; i < $2; i++)); do echo "$(($3 + i))/$4 $1 $i/$2 gpus=$5"; done
}

@test "one script with -N1, -N2 and -N4: a rank per GPU over all nodes" {
  batch job -N1 --gres=gpu:4
  [ "$status" -eq 0 ]
  [ "$(ranks)" = "$(on n1 4 0 4 0,1,2,3)" ]
  [[ $output == *"with the srun launcher: inside Slurm, and it knows PMIx"*"+ /usr/bin/srun --mpi=pmix --ntasks=4 --distribution=arbitrary --nodelist="* ]]

  batch job -N2 --gres=gpu:4
  [ "$(ranks)" = "$(on n1 4 0 8 0,1,2,3; on n2 4 4 8 0,1,2,3)" ]

  batch job -N4 --gres=gpu:4
  [ "$(ranks)" = "$(on n1 4 0 16 0,1,2,3; on n2 4 4 16 0,1,2,3; on n3 4 8 16 0,1,2,3; on n4 4 12 16 0,1,2,3)" ]
}

@test "five GPUs as three and one and one" {
  batch job -N3 --gpus=5
  [ "$(ranks)" = "$(on n1 3 0 5 0,1,2; on n2 1 3 5 0; on n3 1 4 5 0)" ]
}

@test "nodes that are not neighbours, typed GPUs" {
  batch job --nodelist=n1,n3,n4 --gres=gpu:v100:2
  [ "$(ranks)" = "$(on n1 2 0 6 0,1; on n3 2 2 6 0,1; on n4 2 4 6 0,1)" ]
}

@test "GPUs per task: every rank sees all of its node all the same" {
  batch job -N2 --ntasks-per-node=2 --gpus-per-task=1
  [ "$(ranks)" = "$(on n1 2 0 4 0,1; on n2 2 2 4 0,1)" ]
}

@test "a heterogeneous job is one world" {
  batch job -N1 --gres=gpu:4 : -N2 --gres=gpu:2
  [ "$(ranks)" = "$(on n1 4 0 8 0,1,2,3; on n2 2 4 8 0,1; on n3 2 6 8 0,1)" ]
}

@test "a component of a heterogeneous job without GPUs beside one that has some gets no ranks, and a line says so" {
  batch job -N1 --gres=gpu:2 : -N2
  [ "$(ranks)" = "$(on n1 2 0 2 0,1)" ]
  [[ $output == *"[WARN DDL-21-12] n[2-3]: no ranks: this component of the heterogeneous job has asked for no GPUs"* ]]
  batch job -N1 : -N2 --gres=gpu:2
  [ "$(ranks)" = "$(on n2 2 0 4 0,1; on n3 2 2 4 0,1)" ]
}

@test "a heterogeneous job with hosts in another order, and its second component alone" {
  sed -i 's/ddlrun /ddlrun -H n3,n2 /' job
  batch job -N1 --gres=gpu:1 : -N2 --gres=gpu:2
  [ "$(ranks)" = "$(on n3 2 0 4 0,1; on n2 2 2 4 0,1)" ]
  sed -i 's/-H n3,n2 /-H n1,n3,n2 /' job
  batch job -N1 --gres=gpu:1 : -N2 --gres=gpu:2
  [ "$(ranks)" = "$(on n1 1 0 5 0; on n3 2 1 5 0,1; on n2 2 3 5 0,1)" ]
  sed -i 's/-H n1,n3,n2 /-H n2,n1 /' job
  batch job -N1 --gres=gpu:1 : -N2 --gres=gpu:2
  [ "$status" -eq 78 ]
  [[ $output == *"numbers the ranks of a heterogeneous job component by component: leave out --rank-order=cyclic, and name the hosts of -H in this order"* ]]
}

@test "frameworks find the variables of a step that Slurm has laid out by itself, in any order of nodes" {
  local variables='$SLURM_PROCID $SLURM_LOCALID $SLURM_NODEID/$SLURM_NNODES $SLURM_NTASKS $SLURM_NTASKS_PER_NODE $SLURM_STEP_TASKS_PER_NODE $SLURM_DISTRIBUTION'
  script step 'for options in "" "-H n3,n1" "-n 2 --ranks-per-node 1" --rank-order=cyclic; do' \
    '  echo "with $options"' \
    "  ddlrun \$options sh -c 'echo rank \$RANK \$(hostname) $variables; [ \$RANK != 0 ] || srun --overlap -N1 -n1 echo a step within: none' | sort" 'done'
  batch step -N3 --gres=gpu:2
  expect_status 0
  printf '%s\n' 'with ' 'a step within: none' 'rank 0 n1 0 0 0/3 6 2 2(x3) block' 'rank 1 n1 1 1 0/3 6 2 2(x3) block' 'rank 2 n2 2 0 1/3 6 2 2(x3) block' \
    'rank 3 n2 3 1 1/3 6 2 2(x3) block' 'rank 4 n3 4 0 2/3 6 2 2(x3) block' 'rank 5 n3 5 1 2/3 6 2 2(x3) block' \
    'with -H n3,n1' 'a step within: none' 'rank 0 n3 0 0 0/2 4 2 2(x2) block' 'rank 1 n3 1 1 0/2 4 2 2(x2) block' \
    'rank 2 n1 2 0 1/2 4 2 2(x2) block' 'rank 3 n1 3 1 1/2 4 2 2(x2) block' \
    'with -n 2 --ranks-per-node 1' 'a step within: none' 'rank 0 n1 0 0 0/2 2 1 1(x2) block' 'rank 1 n2 1 0 1/2 2 1 1(x2) block' \
    'with --rank-order=cyclic' 'a step within: none' 'rank 0 n1 0 0 0/3 6 2 2(x3) block' 'rank 1 n2 1 0 1/3 6 2 2(x3) block' \
    'rank 2 n3 2 0 2/3 6 2 2(x3) block' 'rank 3 n1 3 1 0/3 6 2 2(x3) block' 'rank 4 n2 4 1 1/3 6 2 2(x3) block' 'rank 5 n3 5 1 2/3 6 2 2(x3) block' > expected
  grep -E '^(rank|with|a step)' step.out | diff expected -
}

@test "an array: each element has its own ranks" {
  script element 'ddlrun sh -c "echo \$SLURM_ARRAY_TASK_ID rank \$RANK/\$WORLD_SIZE" > element.$SLURM_ARRAY_TASK_ID'
  batch element --array=1-2 -N2 --gres=gpu:2
  [ "$status" -eq 0 ]
  for element in 1 2; do
    [ "$(sort "element.$element" | tr '\n' ' ')" = "$element rank 0/4 $element rank 1/4 $element rank 2/4 $element rank 3/4 " ]
  done
  # scontrol is asked which GPUs each node has, and of the last task says what the others have, too.
  rm element.[12]
  batch element --array=1-2 -N3 --gpus=4
  [ "$status" -eq 0 ]
  for element in 1 2; do
    [ "$(sort "element.$element" | tr '\n' ' ')" = "$element rank 0/4 $element rank 1/4 $element rank 2/4 $element rank 3/4 " ]
  done
}

@test "without GPUs: as many ranks as tasks were asked for" {
  batch job -N2 --ntasks-per-node=2
  [ "$(ranks)" = "$(on n1 2 0 4 ''; on n2 2 2 4 '')" ]
}

@test "in the shell of salloc, which has no GPU variables" {
  run hpc salloc --quiet -N2 --gres=gpu:2 ./job
  [ "$status" -eq 0 ]
  [ "$(ranks)" = "$(on n1 2 0 4 0,1; on n2 2 2 4 0,1)" ]
  run hpc salloc --quiet -N2 --gpus=6 ./job
  [ "$(ranks)" = "$(on n1 4 0 6 0,1,2,3; on n2 2 4 6 0,1)" ]
}

# Both have asked before either hears of it: the daemons of their nodes, which carry the questions, are stopped meanwhile.
@test "PMIx servers that ask each other at once get their connection, also in a step without the first node of the job" {
  [ -x "$build/tests/pmix_fence_times" ] || skip "this build has no PMIx"
  script fence "ddlrun -H n2,n3 sh -c 'touch ready\$RANK; until [ -e go ]; do sleep 0.02; done; echo \$SLURM_JOB_NODELIST \$SLURM_NODELIST \${DDLRUN_JOB_NODELIST-}; exec $build/tests/pmix_fence_times'"
  rm -f ready? go
  hpc sbatch --output="$work/out" -N3 --gres=gpu:1 fence
  wait_for 30 test -e ready0 -a -e ready1
  local node
  for node in n2 n3; do cluster at "$node" pkill -STOP -x slurmd; done
  touch go
  sleep 1
  for node in n2 n3; do cluster at "$node" pkill -CONT -x slurmd; done
  wait_for 30 grep -q '^fence 5 1' out
  [ "$(grep -c '^n\[1-3\] n\[1-3\]$' out)" -eq 2 ] # as in the batch script
}

@test "fences of PMIx are barriers: nobody leaves before all have entered" {
  [ -x "$build/tests/pmix_fence_times" ] || skip "this build has no PMIx"
  script fence "ddlrun $build/tests/pmix_fence_times"
  batch fence -N4 --gres=gpu:1
  expect_status 0
  # fence FENCE RANK ENTERED LEFT, by one clock
  [ "$(grep -c '^fence ' <<< "$output")" -eq 24 ]
  grep '^fence ' <<< "$output" | awk '
    { if ($4 > entered[$2]) entered[$2] = $4; if (!($2 in left) || $5 < left[$2]) left[$2] = $5 }
    END { for (fence in left) if (left[fence] < entered[fence]) exit 1 }'
}

@test "ranks on several nodes give the others time to start: 0.1 s between the shim and its program, before Slurm 24.11" {
  [ "$(getconf CLK_TCK)" -eq 100 ]
  # Field 22 of stat: when the process was started, in ticks.
  script pause 'srun --version' 'ddlrun sh -c '\''echo ticks $(($(cut -d" " -f22 /proc/$$/stat) - $(cut -d" " -f22 /proc/$PPID/stat)))'\'
  batch pause -N2 --gres=gpu:1
  echo "$output"
  local version least=0
  version=$(sed -n 's/^slurm[^ ]* \([0-9]*\)\.\([0-9]*\).*/\1\2/p' <<< "$output")
  [ "$version" -ge 2411 ] || least=10
  [ "$(awk -v least=$least '/^ticks / && $2 >= least { ++ranks } END { print ranks + 0 }' <<< "$output")" -eq 2 ]
  # A node that has to wait for its CPU may be late on both, but not at the first of several tries.
  if [ $least -eq 0 ] && ! grep -qE '^ticks [0-9]$' <<< "$output"; then
    batch pause -N2 --gres=gpu:1
    grep -qE '^ticks [0-9]$' <<< "$output"
  fi
}

@test "--pmi says by what ranks find each other" {
  script pmi 'ddlrun "$@" sh -c "echo rank \$RANK/\$WORLD_SIZE \$DDLRUN_PMI \${PMIX_RANK:-no} \${PMI_RANK:-no}"'
  local pmi
  for pmi in none pmi2 pmix; do
    sed -i "s/ddlrun .*sh -c/ddlrun --pmi=$pmi sh -c/" pmi
    batch pmi -N2 --gres=gpu:1
    expect_status 0
    [[ $output == *"2 ranks with the srun launcher: inside Slurm, by --pmi=$pmi"*"srun --mpi=$pmi "* ]]
    case $pmi in
      none) [ "$(ranks)" = $'0/2 none no no\n1/2 none no no' ] ;;
      pmi2) [ "$(ranks)" = $'0/2 pmi2 no 0\n1/2 pmi2 no 1' ] ;;
      pmix) [ "$(ranks)" = $'0/2 pmix 0 no\n1/2 pmix 1 no' ] ;;
    esac
  done
  sed -i 's/ddlrun /ddlrun --launcher=mpirun /' pmi
  batch pmi -N2 --gres=gpu:1
  [[ $output == *"--pmi is not used by the mpirun launcher"* ]]
}

@test "the last words of a rank that fails at once are not lost" {
  script fail 'for i in 1 2 3 4 5; do ddlrun sh -c "[ \$RANK -eq 0 ] || { echo my last words >&2; kill -SEGV \$\$; }; sleep 30"; done'
  batch fail -N2 --gres=gpu:1
  echo "$output"
  [ "$(grep -c '^my last words' <<< "$output")" -eq 5 ]
  [ "$(grep -cE '^ddlrun: .* rank 1 on n2 \(pid [0-9]+\) ended first, with signal 11' <<< "$output")" -eq 5 ]
}

# What a terminal adds: returns, and the end of file of its input, which it shows where it comes before the output.
plain() { tr -d '\r' <<< "$1" | sed 's/\^@//g'; }

@test "in a shell of srun --pty" {
  run hpc script -qec "srun -N2 --gres=gpu:2 --pty ./job" /dev/null
  output=$(plain "$output")
  [ "$(ranks)" = "$(on n1 2 0 4 0,1; on n2 2 2 4 0,1)" ]
  run hpc salloc --quiet -N2 --gres=gpu:2 script -qec "srun -N1 -n1 --pty ./job" /dev/null
  output=$(plain "$output")
  [ "$(ranks)" = "$(on n1 2 0 4 0,1; on n2 2 2 4 0,1)" ]
}

@test "ranks are bound to the cores of the plan, read back on the node" {
  [ "$(nproc)" -ge 2 ] || skip "needs two CPUs"
  script cores 'ddlrun --dry-run=json; ddlrun sh -c "echo rank \$RANK \$(grep Cpus_allowed_list /proc/self/status | cut -f2) \$OMP_NUM_THREADS"'
  batch cores -N2 --gres=gpu:2
  local planned
  planned=$(sed -n '/^{/,/^}/p' <<< "$output" | jq -r '.ranks[] | "\(.rank) \(.cpus) \(.cores)"')
  [ "$(ranks | cut -d' ' -f1,2)" = "$(cut -d' ' -f1,2 <<< "$planned")" ]
  [ "$(ranks | cut -d' ' -f2 | sort -u | wc -l)" -eq 2 ]
  [ "$(ranks | cut -d' ' -f3 | sort -u)" = "$(($(nproc) / 2))" ]
}

@test "the environment of a job that sbatch has given none is that of the ranks" {
  script job 'export ANSWER="4 2"' 'ddlrun -x ASKED=yes sh -c "echo rank \$RANK \$ANSWER \$ASKED \$VIRTUAL_ENV \$PWD"'
  # Slurm's own "nothing", which srun would pass on.
  batch job -N2 --gres=gpu:1 --export=NONE,PATH="$cluster_dir/opt/bin:/usr/bin:/bin"
  [ "$(ranks | cut -d' ' -f1-4)" = "0 4 2 yes"$'\n'"1 4 2 yes" ]
}

@test "--tag-output says whose line it is" {
  script job 'ddlrun --tag-output sh -c "echo hello"'
  batch job -N2 --gres=gpu:1
  [ "$(grep hello <<< "$output" | grep -v '^+' | sort)" = $'[0] hello\n[1] hello' ]
}

@test "--srunarg and srun_arguments reach srun, which says itself what it does not know" {
  local name
  for name in one two; do
    printf '#!/bin/sh\necho "export FROM_%s=$SLURM_PROCID"\n' $name > $name
    chmod 755 $name
  done
  # Of the two srun takes the last, that of the command line.
  printf 'srun_arguments: [--task-prolog=%s]\n' "$PWD/one" > site.yaml
  script job 'ddlrun --site ./site.yaml "$@" sh -c "echo rank \$RANK one=\$FROM_one two=\$FROM_two"'
  batch job -N2 --gres=gpu:2
  echo "$output"
  [ "$(ranks)" = "$(printf '%s\n' '0 one=0 two=' '1 one=1 two=' '2 one=2 two=' '3 one=3 two=')" ]
  sed -i 's|"$@"|--srunarg "--task-prolog $PWD/two"|' job
  batch job -N2 --gres=gpu:2
  echo "$output"
  [ "$(ranks)" = "$(printf '%s\n' '0 one= two=0' '1 one= two=1' '2 one= two=2' '3 one= two=3')" ]
  script job 'ddlrun --srunarg --no-such-option=1 true'
  batch job -N1 --gres=gpu:2
  expect_status 69
  [[ $output == *"no-such-option"* ]]
}
