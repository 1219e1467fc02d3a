#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The environment that is active in the batch script is the one that ranks run in: Python's virtual environments, conda, modules.

load common

teardown() {
  [ -z "${group-}" ] || rmdir "$group"
  require_no_run_directory
}

# on_two_ranks LAUNCHER COMMANDS: a shell runs the commands on each of two ranks; what they print is in rank0 and rank1, since mpirun
# may cut the lines of different ranks into each other.
on_two_ranks() {
  rm -f rank0 rank1
  expect=0 run_ddlrun -n 2 --oversubscribe --launcher="$1" sh -c "{ $2; }"' > "rank$RANK"'
}

both_ranks_say() {
  diff rank0 - <<< "$1"
  diff rank1 - <<< "$1"
}

@test "a Python virtual environment" {
  python3 -m venv --without-pip 'my env'
  mkdir "$(echo 'my env'/lib/python3*/site-packages)/only_here"
  for launcher in $(launchers); do
    . 'my env/bin/activate'
    # Where Open MPI is in /usr/bin it puts that in front of PATH, and python3 with it.
    on_two_ranks "$launcher" 'python3 -c "import only_here, os, sys; print(sys.prefix, os.environ[\"VIRTUAL_ENV\"], \"DDLRUN_PATH\" in os.environ)"'
    deactivate
    both_ranks_say "$PWD/my env $PWD/my env False"
  done
}

@test "a PATH that is given by -x" {
  for launcher in $(launchers); do
    rm -f rank0 rank1
    expect=0 run_ddlrun -n 2 --oversubscribe --launcher="$launcher" -x "PATH=$PWD/bin:$PATH" sh -c 'echo "$PATH" > "rank$RANK"'
    both_ranks_say "$PWD/bin:$PATH"
  done
}

@test "a conda environment" {
  # What `conda activate` leaves in the environment; the programs of the environment are found by PATH.
  mkdir -p conda/envs/wmlce/bin
  ln -s "$(command -v python3)" conda/envs/wmlce/bin/python
  for launcher in $(launchers); do
    CONDA_PREFIX="$PWD/conda/envs/wmlce" CONDA_DEFAULT_ENV=wmlce CONDA_SHLVL=1 search_path="$PWD/conda/envs/wmlce/bin:$PATH" \
      on_two_ranks "$launcher" 'echo "$(command -v python) $CONDA_PREFIX $CONDA_DEFAULT_ENV $CONDA_SHLVL"'
    both_ranks_say "$PWD/conda/envs/wmlce/bin/python $PWD/conda/envs/wmlce wmlce 1"
  done
}

@test "paths of modules, and what the script exported" {
  for launcher in $(launchers); do
    PYTHONPATH="$PWD/python" LOADEDMODULES=ddlrun/1:cuda/12 OMP_NUM_THREADS=1 MY_OPTION='a b' \
      on_two_ranks "$launcher" 'echo "$PYTHONPATH|$LOADEDMODULES|$OMP_NUM_THREADS|$MY_OPTION"'
    both_ranks_say "$PWD/python|ddlrun/1:cuda/12|1|a b"
    # Open MPI puts its own directory in front.
    LD_LIBRARY_PATH="$PWD/lib" on_two_ranks "$launcher" 'echo "${LD_LIBRARY_PATH##*:}"'
    both_ranks_say "$PWD/lib"
  done
}

@test "a script that is not in PATH is run from where the batch script stands" {
  printf '#!/bin/sh\necho "$PWD"\n' > train
  chmod +x train
  for launcher in $(launchers); do
    on_two_ranks "$launcher" ./train
    both_ranks_say "$PWD"
  done
}

@test "ranks know how many GPUs the job was granted: outside Slurm none" {
  for launcher in $(launchers); do
    DDLRUN_GPUS=7 on_two_ranks "$launcher" 'echo "$DDLRUN_GPUS"'
    both_ranks_say 0
  done
}

# Each of $1 ranks says by what Open MPI would wait; mpirun may cut lines of several ranks into each other.
yields() { # RANKS LAUNCHER
  rm -f yield.*
  expect=0 run_ddlrun -n "$1" --oversubscribe --launcher="$2" sh -c 'echo "${OMPI_MCA_mpi_yield_when_idle-unset}" > "yield.$RANK"'
  [ "$(cat yield.* | wc -l)" -eq "$1" ]
  sort -u yield.*
}

@test "ranks that share CPUs let each other have them while they wait in Open MPI" {
  local launcher many=$(($(nproc) + 1))
  for launcher in $(launchers); do
    [ "$(yields "$many" "$launcher")" = 1 ]
    [ "$(yields "$(nproc)" "$launcher")" = unset ]
    [ "$(OMPI_MCA_mpi_yield_when_idle=0 yields "$many" "$launcher")" = 0 ]
  done
}

# The host n2 of -H is this machine as well, with an environment of its own: "${agent[@]}" are options for ddlrun.
two_nodes() {
  printf '#!/bin/sh\nmkdir -p "$TMPDIR/$1"\ndirectory=$TMPDIR/$1\nshift\nexec env -i PATH="$PATH" HOME=/ TMPDIR="$directory" sh -c "$*"\n' > agent
  chmod +x agent
  agent=(--mpiarg "--mca plm_rsh_agent $PWD/agent")
}

@test "variables whose names no shell takes reach the ranks of every node" {
  require_mpirun
  two_nodes
  printf '%s\n' 'import os, sys' \
    'line = " ".join([os.environ["RANK"], *(repr(os.environ.get(name)) for name in sys.argv[1:])])' \
    'os.write(1, (line + "\n").encode())' > show.py # in one piece, since PYTHONUNBUFFERED would make several
  local -a names=(FOO.BAR foo-bar 'BASH_FUNC_x%%' 1X PLAIN G.IVEN)
  search_path=$PATH
  run --separate-stderr env FOO.BAR=1 foo-bar=2 'BASH_FUNC_x%%=() {  echo "a b"
}' 1X=4 PLAIN=5 "$ddlrun" -H 127.0.0.1:1,n2:1 "${agent[@]}" -x G.IVEN=6 -x foo-bar python3 show.py "${names[@]}"
  expect_status 0 "$output $stderr"
  local rank
  for rank in 0 1; do
    grep -xF "$rank '1' '2' '() {  echo \"a b\"\\n}' '4' '5' '6'" <<< "$output"
  done
}

@test "ranks that are not bound have an equal part of the CPUs each" {
  local launcher cpus
  cpus=$(nproc)
  unset OMP_NUM_THREADS
  for launcher in $(launchers); do
    expect=0 run_ddlrun -n $((cpus * 2)) --oversubscribe --launcher="$launcher" sh -c 'echo "$OMP_NUM_THREADS"'
    [ "$(sort -u <<< "$output")" = 1 ]
    expect=0 run_ddlrun -n 1 --bind=none --launcher="$launcher" sh -c 'echo "$OMP_NUM_THREADS"'
    [ "$output" = "" ] # its own program decides
  done
  OMP_NUM_THREADS=7 expect=0 run_ddlrun -n $((cpus * 2)) --oversubscribe sh -c 'echo "$OMP_NUM_THREADS"'
  [ "$(sort -u <<< "$output")" = 7 ]
}

@test "what Python prints comes when it is printed" {
  echo 'import os, signal; print("the last words"); os.kill(os.getpid(), signal.SIGKILL)' > killed.py
  for launcher in $(launchers); do
    expect=137 run_ddlrun -n 1 --launcher="$launcher" python3 killed.py
    [[ $output = *"the last words"* ]]
  done
  PYTHONUNBUFFERED='' run_ddlrun -n 1 --launcher=local python3 killed.py
  [[ $output != *"the last words"* ]] # who has set it has it so
  PYTHONUNBUFFERED=x run_ddlrun -n 1 --launcher=local sh -c 'echo "$PYTHONUNBUFFERED"'
  [ "$output" = x ]
}

@test "what several ranks print comes in whole lines, however Python writes them" {
  printf '%s\n' 'import os' 'rank = os.environ["RANK"]' 'for i in range(300): print("rank", rank, "line", i, "of", 300)' > print.py
  local launcher options line='^(\[[0-3]\] )?rank [0-3] line [0-9]+ of 300$'
  unset PYTHONUNBUFFERED
  for launcher in $(launchers); do
    # mpirun cuts lines itself, at each 4 kB; Python is not to write pieces besides (52 of 2,000 lines of several ranks were mixed).
    if [ "$launcher" = mpirun ]; then
      expect=0 run_ddlrun -n 1 --launcher=mpirun sh -c 'echo "${PYTHONUNBUFFERED-unset}"'
      [ "$output" = unset ]
      expect=0 run_ddlrun -n 1 --launcher=mpirun --log-dir logs sh -c 'echo "${PYTHONUNBUFFERED-unset}"'
      [ "$output" = 1 ]
      continue
    fi
    for options in "" --tag-output "--log-dir logs"; do
      # shellcheck disable=SC2086 # options are words
      expect=0 run_ddlrun -n 4 --oversubscribe --launcher="$launcher" $options python3 print.py
      [ "$(grep -cE "$line" <<< "$output")" -eq 1200 ] || { grep -vE "$line" <<< "$output" | head; false; }
    done
  done
}

@test "torchrun on each node, and JAX, meet at rank 0" {
  require_mpirun
  two_nodes
  local show='echo "$RANK $PET_NNODES $PET_NODE_RANK $PET_MASTER_ADDR:$PET_MASTER_PORT $MASTER_ADDR:$MASTER_PORT $JAX_COORDINATOR_ADDRESS"'
  expect=0 run_ddlrun -H 127.0.0.1:1,n2:1 "${agent[@]}" sh -c "$show"
  grep -xE '0 2 0 (127.0.0.1:[0-9]+) \1 \1' <<< "$output"
  grep -xE '1 2 1 (127.0.0.1:[0-9]+) \1 \1' <<< "$output"
  local ranks
  for ranks in 1 2; do # on one node
    expect=0 run_ddlrun -n "$ranks" --launcher=local sh -c "$show"
    [ "$(grep -cxE '[01]   : (127.0.0.1:[0-9]+) \1' <<< "$output")" -eq "$ranks" ]
  done
  # What the user has set stays.
  PET_RDZV_ENDPOINT=n2:29400 JAX_COORDINATOR_ADDRESS=n2:1 expect=0 run_ddlrun -H 127.0.0.1:1,n2:1 -x PET_RDZV_ENDPOINT \
    -x JAX_COORDINATOR_ADDRESS "${agent[@]}" sh -c "$show"
  [ "$(grep -cxE '[01]   : 127.0.0.1:[0-9]+ n2:1' <<< "$output")" -eq 2 ]
  expect=0 run_ddlrun -H 127.0.0.1:1,n2:1 "${agent[@]}" sh -c "$show" sh --standalone # each is to be a world of its own
  [ "$(grep -cxE '[01]   : (127.0.0.1:[0-9]+) \1' <<< "$output")" -eq 2 ]
  PET_NNODES=1:4 expect=0 run_ddlrun -H 127.0.0.1:1,n2:1 -x PET_NNODES "${agent[@]}" sh -c "$show"
  [ "$(grep -cE '^[01] 1:4  : ' <<< "$output")" -eq 2 ]
}

# limit_cpus QUOTA: makes the group $group, below that of this test, which has QUOTA of 100000 microseconds.
limit_cpus() {
  local place
  place=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)
  if grep -qE '^[0-9]+:([^:]*,)?cpu(,[^:]*)?:' /proc/self/cgroup; then
    place=/sys/fs/cgroup/cpu$(sed -nE 's/^[0-9]+:([^:]*,)?cpu(,[^:]*)?://p' /proc/self/cgroup)
  fi
  mkdir "$place/ddlrun-cpu-$$" 2> /dev/null || skip "no control group can be made in $place"
  group=$place/ddlrun-cpu-$$
  if [ -e "$group/cpu.cfs_quota_us" ]; then
    echo 100000 > "$group/cpu.cfs_period_us"
    echo "$1" > "$group/cpu.cfs_quota_us"
  elif [ -e "$group/cpu.max" ]; then
    echo "$1 100000" > "$group/cpu.max"
  else
    skip "$group does not limit CPU time"
  fi
}

@test "a control group's limit of CPU time is one of threads" {
  [ "$(nproc)" -ge 2 ] || skip "this machine has one CPU"
  run_ddlrun -n 1 --launcher=local sh -c 'echo "$OMP_NUM_THREADS"'
  [ "$output" -ge 2 ] || skip "a rank has one core"
  limit_cpus 50000
  in_group() {
    run --separate-stderr timeout 60 bash -c 'echo $$ > "$0/cgroup.procs"; exec "$@"' "$group" \
      "$ddlrun" -n 1 --launcher=local sh -c 'echo "$OMP_NUM_THREADS $DDLRUN_OMP_NUM_THREADS"'
    echo "$output$stderr"
  }
  in_group
  [ "$output" = "1 1" ]
  OMP_NUM_THREADS=7 in_group
  [ "$output" = "7 " ]
}

# limit_memory BYTES: makes the group $group, below that of this test.
limit_memory() {
  local place
  place=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)
  if grep -qE '^[0-9]+:([^:]*,)?memory(,[^:]*)?:' /proc/self/cgroup; then
    place=/sys/fs/cgroup/memory$(sed -nE 's/^[0-9]+:([^:]*,)?memory(,[^:]*)?://p' /proc/self/cgroup)
  fi
  mkdir "$place/ddlrun-memory-$$" 2> /dev/null || skip "no control group can be made in $place"
  group=$place/ddlrun-memory-$$
  if [ -e "$group/memory.limit_in_bytes" ]; then
    grep -q '^oom_kill ' "$group/memory.oom_control" || skip "this kernel does not count what it kills"
    echo "$1" > "$group/memory.limit_in_bytes"
  elif [ -e "$group/memory.max" ]; then
    echo "$1" > "$group/memory.max"
    echo 0 > "$group/memory.swap.max" || true
  else
    skip "$group does not limit memory"
  fi
}

@test "a rank that the kernel kills for memory: the last line says so" {
  local launcher
  limit_memory 200M
  for launcher in $(launchers); do
    run --separate-stderr timeout 60 bash -c 'echo $$ > "$0/cgroup.procs"; exec "$@"' "$group" \
      "$ddlrun" -n 2 --oversubscribe --launcher="$launcher" sh -c '[ "$RANK" = 0 ] && exec sleep 30; exec python3 -c "bytearray(400 << 20)"'
    echo "$stderr"
    [ "$status" -eq 137 ]
    [[ ${stderr##*$'\n'} == *"the job failed: rank 1 on "*"with signal 9 (Killed), "*" s after the start; the kernel killed 1 process for memory (limit 200 MiB): give the job more (#SBATCH --mem)" ]]
    run --separate-stderr timeout 60 bash -c 'echo $$ > "$0/cgroup.procs"; exec "$@"' "$group" \
      "$ddlrun" -n 1 --launcher="$launcher" sh -c 'exit 9' # of what was killed before nothing is said
    [[ ${stderr##*$'\n'} == *"with exit code 9, "*" s after the start" ]]
  done
}

# A machine of two NUMA nodes, whose firmware says of its GPU 0000:3b:00.0, behind a root port, that it is on the first.
make_machine() { # FOLDER
  local cpus=$1/sys/devices/system/cpu nodes=$1/sys/devices/system/node gpu=$1/sys/bus/pci/devices/0000:3b:00.0 port=$1/sys/bus/pci/devices/0000:3a:00.0 n
  mkdir -p "$1/proc" "$gpu" "$port" "$cpus"/cpu{0..3}/topology "$nodes"/node{0,1}
  echo 0-3 | tee "$cpus/online" > "$cpus/possible"
  echo 0-1 | tee "$nodes/online" > "$nodes/possible"
  for n in 0 1 2 3; do
    printf '%x\n' $((1 << n)) | tee "$cpus/cpu$n/topology/thread_siblings" > "$cpus/cpu$n/topology/core_cpus"
    printf '%x\n' $((3 << n / 2 * 2)) | tee "$cpus/cpu$n/topology/core_siblings" > "$cpus/cpu$n/topology/package_cpus"
    echo $((n / 2)) > "$cpus/cpu$n/topology/physical_package_id"
    echo $((n % 2)) > "$cpus/cpu$n/topology/core_id"
  done
  for n in 0 1; do
    printf '%x\n' $((3 << n * 2)) > "$nodes/node$n/cpumap"
    echo "Node $n MemTotal: 1000000 kB" > "$nodes/node$n/meminfo"
  done
  echo 0x030200 > "$gpu/class"
  echo 0x10de | tee "$gpu/vendor" > "$gpu/subsystem_vendor"
  echo 0x1db1 | tee "$gpu/device" > "$gpu/subsystem_device"
  echo 0xa1 > "$gpu/revision"
  echo 3 > "$gpu/local_cpus"
  head -c 256 /dev/zero > "$gpu/config"
  cp "$gpu"/* "$port"
  echo 0x060400 > "$port/class"
  # Of the header: a bridge, the bus that it is on, and the only one behind it.
  { head -c 14 /dev/zero; printf '\001'; head -c 9 /dev/zero; printf '\072\073\073'; head -c 229 /dev/zero; } > "$port/config"
}

# What ddlrun --tune tells a user to type where copies are faster from the other NUMA node: hwloc knows places of host bridges alone.
@test "HWLOC_PCI_LOCALITY tells where a GPU is, and its rank is bound there" {
  make_machine machine
  export HWLOC_FSROOT=$PWD/machine HWLOC_COMPONENTS=linux,stop
  run_ddlrun --dry-run --accelerators 1 --launcher=local -H localhost:1 true
  echo "$output$messages"
  [[ $output$messages == *"0     localhost  0      0    node 0  0-1    0-1"* ]]
  HWLOC_PCI_LOCALITY="0000:3a 0x0000000c;0000:80 0x00000003" run_ddlrun --dry-run --accelerators 1 --launcher=local -H localhost:1 true
  echo "$output$messages"
  [[ $output$messages == *"0     localhost  0      0    node 1  2-3    2-3"* ]]
}

# Slurm numbers GPUs by their device files, CUDA by their places on the bus; on some machines these differ.
@test "GPU 0 of Slurm is /dev/nvidia0, wherever it is on the bus" {
  unshare -m true 2> /dev/null || skip "needs root"
  make_machine machine
  local other=machine/sys/bus/pci/devices/0000:86:00.0 gpu
  cp -r machine/sys/bus/pci/devices/0000:3b:00.0 "$other"
  cp -r machine/sys/bus/pci/devices/0000:3a:00.0 machine/sys/bus/pci/devices/0000:85:00.0
  echo c > "$other/local_cpus"
  sed -i 's/\x3a\x3b\x3b/\x85\x86\x86/' machine/sys/bus/pci/devices/0000:85:00.0/config
  echo c > machine/sys/bus/pci/devices/0000:85:00.0/local_cpus
  for gpu in 3b:1 86:0; do
    mkdir -p "driver/nvidia/gpus/0000:${gpu%:*}:00.0"
    printf 'Model: \t\t Tesla V100-SXM2-16GB\nDevice Minor: \t %s\n' "${gpu#*:}" > "driver/nvidia/gpus/0000:${gpu%:*}:00.0/information"
  done
  export HWLOC_FSROOT=$PWD/machine HWLOC_COMPONENTS=linux,stop HWLOC_PCI_LOCALITY="0000:3a 0x00000003;0000:85 0x0000000c"
  export SLURM_JOB_ID=7 SLURM_JOB_NODELIST=n1 SLURM_JOB_NUM_NODES=1 SLURM_GPUS_ON_NODE=1 SLURMD_NODENAME=n1 SLURM_TASKS_PER_NODE=1
  planned() { # JOB_GPUS: the NUMA node of the rank, with Slurm's GPU
    SLURM_JOB_GPUS=$1 CUDA_VISIBLE_DEVICES=$1 unshare -m sh -c 'mount --bind driver /proc/driver && exec "$@"' - \
      "$ddlrun" --dry-run --launcher=local true 2>&1 | sed -nE 's/^0 +n1 +0 +([0-9]) +(node [01]) .*/\1 \2/p'
  }
  [ "$(planned 0)" = "0 node 1" ]
  [ "$(planned 1)" = "1 node 0" ]
  sed -i 's/^Device Minor/Device/' driver/nvidia/gpus/*/information # a driver that does not say
  [ "$(planned 0)" = "0 node 0" ]
}
