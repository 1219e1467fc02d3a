#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Programs that cannot start, and places in which they cannot: what is said of them.

load common

# make_elf FILE MACHINE: the header of a program of 64 bits, least byte first, for the machine of this number (two bytes in octal), with
# words behind it that a shell would run.
make_elf() {
  printf '\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\2\0'"$2"'\1\0\0\0\0\20\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\100\0\70\0\0\0\0\0\0\0\0\0\ntouch was-run\n' > "$1"
  chmod +x "$1"
}

# says LAUNCHER PROGRAM TEXT: ddlrun refuses the program with 69 and this text, starts it once, and runs nothing of it.
says() {
  expect=69 run_ddlrun -n 1 --launcher="$1" --max-restarts 2 "$2" one two
  [ ! -e was-run ]
  [ "$(grep -c "^ddlrun-rank: .*cannot start '$2': .*$3" <<< "$messages")" -eq 1 ]
}

@test "a program of another machine is named as one, and nothing of it is run" {
  make_elf of_power '\25\0'
  make_elf of_arm '\267\0'
  make_elf of_intel '\76\0'
  for launcher in $(LAUNCHERS='local mpirun' launchers); do
    for name in of_power=ppc64le of_arm=aarch64 of_intel=x86_64; do
      [ "${name#*=}" != "$(uname -m)" ] || continue
      says $launcher "./${name%=*}" "Exec format error: it is built for ${name#*=}, and this node is $(uname -m)"
      PATH=$PATH:$PWD says $launcher "${name%=*}" "Exec format error: it is built for ${name#*=}, and this node is $(uname -m)"
    done
  done
}

@test "what is no program is named as what it is" {
  : > empty
  printf '\357\273\277#!/bin/sh\ntouch was-run\n' > marked
  printf 'touch was-run\n' > code.py
  printf 'x\0y\ntouch was-run\n' > data
  printf '#!/usr/bin/env no-such-python\ntouch was-run\n' > script
  chmod +x empty marked code.py data script
  mkdir directory
  printf 'import this\n' > train.py
  for launcher in $(LAUNCHERS='local mpirun' launchers); do
    says $launcher ./empty 'the file is empty'
    says $launcher ./marked 'byte order mark'
    says $launcher ./code.py 'write python ./code.py'
    says $launcher ./data 'it is data, and no program'
    says $launcher ./script 'not its interpreter no-such-python'
    says $launcher ./directory 'it is a directory'
    says $launcher ./train.py 'write python ./train.py'
    says $launcher train.py 'write python train.py'
    says $launcher FOO=1 'write -x FOO=1 before the program'
  done
}

# make_srun COMMAND: a job on n1 whose srun starts its one rank after this command.
make_srun() {
  export SLURM_JOB_ID=4711 SLURM_JOB_NODELIST=n1 SLURM_JOB_NUM_NODES=1 SLURMD_NODENAME=n1 SLURM_GPUS_PER_NODE=1 SLURM_GPUS_ON_NODE=1
  mkdir -p "$BATS_TEST_TMPDIR/bin"
  printf '%s\n' '#!/bin/bash' 'case $1 in' '  --mpi=list) printf "MPI plugin types are...\n\tnone\n"; exit ;;' \
    '  --version) echo slurm 24.11.5; exit ;;' 'esac' 'while [ "$1" != -- ]; do shim=$1; shift; done' "$1" \
    'SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_STEP_NUM_TASKS=1 exec "$shim" "$@"' > "$BATS_TEST_TMPDIR/bin/srun"
  chmod +x "$BATS_TEST_TMPDIR/bin/srun"
  search_path=$BATS_TEST_TMPDIR/bin:$PATH # of run_ddlrun
}

of_srun() {
  run_ddlrun --launcher=srun --topology "$BATS_TEST_DIRNAME/../../fixtures/hwloc/dgx1v.xml" --bind none --pmi none "$@"
  echo "$output $messages"
}

@test "a rank that srun has started elsewhere goes to the directory of ddlrun" {
  mkdir -p 'a place/below'
  ln -s 'a place' link
  cd link/below
  make_srun 'cd /'
  expect=0 of_srun sh -c 'pwd; echo "$PWD"; /bin/pwd -P; echo > file'
  [ "$output" = "$BATS_TEST_TMPDIR/link/below"$'\n'"$BATS_TEST_TMPDIR/link/below"$'\n'"$(readlink -f "$BATS_TEST_TMPDIR")/a place/below" ]
  [ -e file ]
}

@test "a rank whose node lacks the directory of ddlrun is refused, and the directory and the node are named" {
  for change in 'mv "$PWD" "$PWD.gone"' 'mv "$PWD" "$PWD.gone"; : > "${PWD}"' 'mv "$PWD" "$PWD.gone"; ln -s nowhere "$PWD"'; do
    mkdir -p project
    cd project
    make_srun "$change; cd /"
    of_srun sh -c 'echo > was-run'
    cd ..
    [ "$status" -eq 78 ]
    [[ $messages == *"[ERROR DDL-20-78] rank 0 on n1: this node has no working directory $PWD/project, where ddlrun was started: "* ]]
    rm -rf project project.gone
  done
}

@test "a node of mpirun that lacks the directory is named; one that the user chooses is not looked for" {
  require_mpirun
  unshare -rmu true 2> /dev/null || skip "no mount namespace can be made here"
  # The other node has another file system where the project is.
  printf '#!/bin/sh\nmkdir -p "$TMPDIR/$1"\nexport TMPDIR="$TMPDIR/$1" HOME=/\nshift\nexec unshare -rmu sh -c "hostname n2 && mount -t tmpfs none %s && $*"\n' \
    "$PWD/parent" > agent
  chmod +x agent
  mkdir -p parent/project
  cd parent/project
  expect=78 run_ddlrun -H "$(hostname):1,n2:1" --mpiarg "--mca plm_rsh_agent $BATS_TEST_TMPDIR/agent" sh -c 'pwd > "$BATS_TEST_TMPDIR/ran.$RANK"'
  [ ! -e "$BATS_TEST_TMPDIR/ran.1" ]
  [[ $messages == *"rank 1 on n2: this node has no working directory $PWD, where ddlrun was started: No such file or directory"* ]]
  expect=0 run_ddlrun -H "$(hostname):1,n2:1" --mpiarg "--mca plm_rsh_agent $BATS_TEST_TMPDIR/agent -wdir /" sh -c 'pwd'
  [ "$output" = $'/\n/' ]
}

@test "in a directory that was removed ddlrun starts what does not need it, and says of the rest that it is gone" {
  mkdir gone
  cd gone
  rmdir ../gone
  expect=0 run_ddlrun -n 1 --launcher=local true
  local -a options
  for text in '--hostfile h' '--rankfile r' '--site ./s.yaml' '--topology t.xml' '--progress-file p --max-restarts 1' '-- ./program' '-- ../program'; do
    read -r -a options <<< "$text"
    run_ddlrun -n 1 --launcher=local "${options[@]}" true
    echo "$text: $status $messages"
    [ "$status" -ne 70 ]
    [[ $messages != *"Unexpected Error"* ]]
  done
  for text in '--run-dir .' '--run-dir below' '--heartbeat beats/%r' '--log-dir logs' '--run-dir . --dry-run' '--launcher=mpirun'; do
    [[ $text != *mpirun ]] || command -v mpirun > /dev/null || continue
    read -r -a options <<< "$text"
    run_ddlrun -n 1 --launcher=local "${options[@]}" true
    echo "$text: $status $messages"
    [ "$status" -eq 71 ] || [ "$text" = '--run-dir . --dry-run' ]
    [ "$status" -ne 70 ]
    [[ $messages == *removed* || $text == --log-dir* || $text == *dry-run ]]
    [[ $messages != *"Unexpected Error"* ]]
  done
  make_srun ''
  expect=71 of_srun true
  [[ $messages == *"the current directory was removed: change to one that is there (cd)"* ]]
}

# gives_up PATTERN ARGUMENT...: by itself mpirun starts nothing, which is 69, its own words are the last, and it is not tried again.
gives_up() {
  local pattern=$1
  shift
  expect=69 run_ddlrun --max-restarts 3 --launcher=mpirun "$@"
  [ "$(grep -c 'the job failed: mpirun ended by itself, with exit code ' <<< "$messages")" -eq 1 ]
  [[ $messages == *"not started again: exit code 69 would come again"* ]]
  grep -A12 '^ddlrun: last lines of mpirun:' <<< "$messages" | grep -q "$pattern"
}

@test "an mpirun that starts nothing ends the job with 69 and its own words, and is not tried again" {
  require_mpirun
  mpirun_is_prrte && skip "the words are those of Open MPI 4"
  gives_up 'no-such-option' -n 1 --mpiarg --no-such-option true
  gives_up 'mapping policy is not recognized' -n 1 --mpiarg '--map-by no-such-place' true
  local long # mpirun copies its words one by one: a few long ones take it no time
  long=$(printf '%0120000d' 0)
  gives_up . -n 1 true $(for _ in {1..16}; do echo "$long"; done)
  gives_up . -H "$(hostname):1,n2:1" --mpiarg "--mca plm_rsh_agent /bin/false" true
}

@test "a node without ddlrun is no failure of a rank" {
  require_mpirun
  unshare -rm true 2> /dev/null || skip "no mount namespace can be made here"
  # On the other node another file system is where the shim is.
  printf '#!/bin/sh\nmkdir -p "$TMPDIR/$1"\nexport TMPDIR="$TMPDIR/$1"\nshift\nexec unshare -rm sh -c "mount -t tmpfs none %s && $*"\n' \
    "$DDLRUN_BUILD/libexec" > agent
  chmod +x agent
  gives_up 'ddlrun-rank' -H "$(hostname):1,n2:1" --mpiarg "--mca plm_rsh_agent $PWD/agent" sleep 20
}

@test "an mpirun that ends with 0 after a node is gone is no success" {
  require_mpirun
  printf '#!/bin/sh\n[ "$1" != --version ] || exec %s --version\nwhile [ "$1" != -- ]; do shim=$1; shift; done\n%s\n' "$(command -v mpirun)" \
    'OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=1 "$shim" "$@"; exit 0' > mpirun
  chmod +x mpirun
  PATH=$PWD:$PATH expect=69 run_ddlrun -H "$(hostname):1,n2:1" --bind none --launcher=mpirun true
  [[ $messages == *"mpirun ended with 0, but did not report the exit of rank 1 on n2: "* ]]
}
