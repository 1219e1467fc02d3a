#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What ddlrun refuses, and what it prints without starting anything.

load common

# refused CODE TEXT ARGUMENTS...: one line with the code, that exit code, and nothing started.
refused() {
  local code=$1 text=$2
  shift 2
  run_ddlrun "$@"
  echo "$status: $messages"
  [ "$status" -eq "$code" ]
  [ -z "$output" ]
  [[ $messages == "ddlrun: [ERROR DDL-20-$code] "*"$text"* ]]
  [ "$(wc -l <<< "$messages")" -eq 1 ]
}

@test "an unknown option names the nearest spelling" {
  refused 64 "unknown option --acelerators; did you mean --accelerators?" --acelerators 4 true
}

@test "of a long value a message repeats the beginning" {
  long=$(head -c 120000 /dev/zero | tr '\0' x)
  for option in -n --launcher --bind --site --hostfile --topology --run-dir --log-dir -x; do
    run_ddlrun "$option" "$long" true
    [ "$status" -ge 64 ]
    [[ $messages == "ddlrun: [ERROR DDL-20-"*"xxxxx... (120000 characters)"* ]]
    [ "${#messages}" -lt 1000 ]
  done
  refused 64 "xxxxx... (120002 characters)" "--$long" true
}

@test "no program" {
  refused 64 "no program given" -n 2
}

@test "more ranks than slots" {
  refused 78 "5 ranks" -n 5 -H localhost:2 true
}

@test "hosts given in two ways" {
  refused 64 "either -H or -hostfile" -H a -hostfile b true
}

@test "a hostfile that is not there, and one that is no list of hosts" {
  refused 65 "nodes.txt cannot be read" -hostfile nodes.txt true
  echo 'host slots=x' > bad.txt
  refused 65 "bad.txt:1" -hostfile bad.txt true
}

@test "a rankfile with a mistake, by line" {
  printf 'rank 0=a slot=0\nrank x=a slot=0\n' > my.rankfile
  refused 65 "my.rankfile:2" -rf my.rankfile true
}

@test "Slurm variables that contradict each other" {
  SLURM_JOB_ID=1 SLURM_JOB_NODELIST='n[1-3]' SLURM_JOB_NUM_NODES=2 \
    refused 78 "SLURM_JOB_NUM_NODES" true
}

@test "a site file with an unknown key, by line, with the nearest key" {
  printf 'launcher: auto\nmpi_argument: [a]\n' > site.yaml
  refused 78 "site.yaml:2: unknown key 'mpi_argument'; did you mean 'mpi_arguments'?" --site ./site.yaml true
  DDLRUN_SITE=./site.yaml refused 78 "site.yaml:2:" true
  refused 78 "did you mean 'bede'?" --site beda true
}

@test "the local launcher for other machines" {
  refused 78 "other.example" -H other.example --launcher=local true
}

@test "other machines without mpirun" {
  search_path=/nonexistent refused 69 "need Open MPI's mpirun, but mpirun is not in PATH: load Open MPI" -H other1,other2 true
}

@test "a run directory that cannot be made" {
  refused 71 "/nonexistent" -n 1 --run-dir /nonexistent true
}

@test "a variable to export that is not set" {
  refused 64 "-x NOT_SET" -x NOT_SET true
}

@test "the shim refuses to be started by hand" {
  run -70 --separate-stderr "$DDLRUN_BUILD/libexec/ddlrun/ddlrun-rank" -- true
  run -64 --separate-stderr "$DDLRUN_BUILD/libexec/ddlrun/ddlrun-rank"
}

@test "a dry run shows the plan and the command and starts nothing" {
  require_mpirun
  local ac922=tests/fixtures/hwloc/ac922_16c_4v100.xml
  SLURM_JOB_ID=7 SLURM_JOB_NODELIST='gpu[025-026]' SLURM_JOB_NUM_NODES=2 SLURM_GPUS_PER_NODE=4 \
    run_ddlrun --dry-run --topology "$BATS_TEST_DIRNAME/../../../$ac922" --site bede touch started
  [ "$status" -eq 0 ]
  [[ $output == *gpu026* ]]
  [[ $output == *$'\nDDL_HOST_LIST=gpu025:0,1,2,3;gpu026:4,5,6,7\nDDL_OPTIONS=-mode p:4x2x1x1'* ]]
  [[ $output == *"+ "*"mpirun "*" -n 8 "*" -x DDL_HOST_LIST "*" -x NCCL_IB_HCA "* ]]
  [ ! -e started ]
}

@test "a dry run as JSON is JSON alone" {
  run_ddlrun --dry-run=json -n 2 --oversubscribe
  [ "$(python3 -c 'import json,sys; print(len(json.load(sys.stdin)["ranks"]))' <<< "$output")" = 2 ]
}

@test "--show-config names the origin of every value" {
  printf '# comment\nbind: none\nenvironment: {NCCL_DEBUG: WARN, UCX_TLS: rc}\n' > site.yaml
  NCCL_DEBUG=INFO expect=0 run_ddlrun --show-config --site ./site.yaml --launcher=local
  grep -qE '^launcher: local +# command line$' <<< "$output"
  grep -qE '^bind: none +# ./site.yaml:2$' <<< "$output"
  grep -qE '^mpirun: mpirun +# default$' <<< "$output"
  grep -qE '^environment.NCCL_DEBUG: INFO +# environment$' <<< "$output"
  grep -qE '^environment.UCX_TLS: rc +# ./site.yaml:3$' <<< "$output"
}

@test "--help and --version" {
  expect=0 run_ddlrun --help
  [[ $output == "usage: ddlrun [options] program [arguments]"* ]]
  run_ddlrun --version
  [[ ${lines[0]} =~ ^"ddlrun "[0-9]+\.[0-9]+\.[0-9]+$ ]]
  [[ ${lines[1]} == "built with: "* ]]
  [[ $output != *"back end"* ]] # of ddltraind, which may be installed or not
}

@test "programs of ddlrun that are missing are named before anything starts" {
  local name built=$DDLRUN_BUILD/libexec/ddlrun
  mkdir -p bin libexec/ddlrun
  cp "$ddlrun" bin
  ln -s "$DDLRUN_BUILD/share" .
  ddlrun=$PWD/bin/ddlrun
  for name in ddlrun-rank ddlrun-rank-check ddlrun-node-check; do
    refused 69 "libexec/ddlrun/$name is missing: ddlrun is not completely installed; build it again (cmake --build" --check=full -n 1 true
    cp "$built/$name" libexec/ddlrun
  done
  expect=0 run_ddlrun --check=full -n 1 true
}

@test "numbers of the environment are read whole, or refused with their variable" {
  for text in 29500abc 4294996796 0 70000 -1 '29500 ' +29500 0x733c 29500.0; do
    MASTER_PORT=$text refused 78 "MASTER_PORT='$text' is no port from 1 to 65535" -n 1 --launcher=local true
    refused 78 "MASTER_PORT='$text' is no port from 1 to 65535" -n 1 --launcher=local -x "MASTER_PORT=$text" true
    printf 'environment: {MASTER_PORT: "%s"}\n' "$text" > site.yaml
    refused 78 "MASTER_PORT='$text' is no port from 1 to 65535" -n 1 --launcher=local --site ./site.yaml true
  done
  for text in 3x x3 -3 ' 3'; do
    SLURM_RESTART_COUNT=$text refused 78 "SLURM_RESTART_COUNT='$text' is not numeric" -n 1 --launcher=local true
  done
  MASTER_PORT= SLURM_RESTART_COUNT=2 run_ddlrun -n 1 --launcher=local sh -c 'echo $DDLRUN_RESTART_COUNT'
  [ "$output" = 2 ]
}

@test "a program on standard input is rank 0's alone: refused for more ranks than one" {
  for program in 'python3 -' bash 'sh -s one'; do
    run_ddlrun -n 2 --oversubscribe --launcher=local $program <<< 'exit 3'
    expect_status 64 "$program: $messages"
    [[ $messages = *"${program%% *} would read its program from standard input, which is rank 0's alone: "*" Write the program to a file" ]]
  done
  run_ddlrun -n 1 --launcher=local bash -s three <<< 'echo $1'
  [ "$status" -eq 0 ]
  [ "$output" = three ]
}

@test "--tune with a program, with what it decides itself, on one node, over a file" {
  refused 64 "--tune measures by programs of its own: leave 'touch' and what follows out; another file is --tune=FILE" --tune touch started
  [ ! -e started ]
  refused 64 "--tune does not go with -n: it measures pairs of nodes, too" --tune -n 2
  refused 64 "--tune does not go with --hostfile: name the hosts by -H" --hostfile hosts --tune
  refused 64 "--tune does not go with --rankfile: it tries where ranks are" --rankfile ranks --tune
  refused 64 "--tune does not go with --heartbeat: ddlbench touches no file" --heartbeat beat --tune
  refused 64 "--tune does not go with --log-dir: " --log-dir logs --tune
  refused 64 "--tune does not go with --max-restarts: " --max-restarts 2 --tune
  refused 64 "--tune does not go with --spare-nodes: " --spare-nodes 1 --tune
  refused 64 "--tune does not go with --min-nodes: " --min-nodes 1 --tune
  refused 64 "--tune does not go with --requeue: " --requeue --tune
  refused 64 "--tune does not go with --check-only" --check-only --tune
  refused 64 "--tune does not go with --site-report" --site-report --tune
  refused 78 "--tune needs two nodes or more, and this is one: salloc -N2 ddlrun --tune" --tune
  [ ! -e ddlrun-tuned.yaml ]
  echo '{bind: none}' > braces.yaml
  refused 78 "nothing can be added to the site file ./braces.yaml: write each of its keys at the beginning of a line" --site ./braces.yaml --tune
  refused 71 "no file can be made in nowhere" --tune=nowhere/tuned.yaml
  echo 'bind: none' > mine.yaml
  refused 64 "mine.yaml is there already, and --tune writes over no file: move it away, or name another one: --tune=FILE" --tune=mine.yaml
  [ "$(cat mine.yaml)" = 'bind: none' ]
}
