#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# ddlrun with the mpirun launcher: Open MPI on this machine.

load common

@test "in one file a line of standard error does not come within one of standard output" {
  require_mpirun
  timeout 60 "$ddlrun" -n 1 --launcher=mpirun sh -c 'printf "one "; sleep 0.5; echo error >&2; sleep 0.5; echo line' > both 2>&1
  cat both
  grep -qx 'one line' both
  grep -qx error both
}

@test "auto takes mpirun for more than one rank and says so" {
  require_mpirun
  run_ddlrun -n 2 --oversubscribe sh -c 'echo "$DDLRUN_LAUNCHER"'
  [ "$output" = $'mpirun\nmpirun' ]
  [[ $messages == *"with the mpirun launcher: it is installed"* ]]
}

@test "without mpirun auto takes local" {
  search_path=/nonexistent run_ddlrun -n 2 --oversubscribe /bin/sh -c 'echo "$DDLRUN_LAUNCHER"'
  [ "$output" = $'local\nlocal' ]
  [[ $messages == *"with the local launcher: mpirun is not in PATH: in each rank an MPI program would be a world of its own"* ]]
}

@test "the user's own rankfile places and binds" {
  require_mpirun
  printf 'rank 0=%s slot=0\nrank 1=%s slot=0\n' "$(hostname)" "$(hostname)" > my.rankfile
  expect=0 run_ddlrun -rf my.rankfile sh -c 'echo "$RANK $(nproc)"'
  [ "$(sort <<< "$output")" = $'0 1\n1 1' ]
  [[ $messages == *"--rankfile my.rankfile"* || $messages == *"--map-by rankfile:FILE=my.rankfile --bind-to :overload-allowed"* ]]
  mv my.rankfile 'my-ranks:2'
  expect=0 run_ddlrun -rf 'my-ranks:2' sh -c 'echo "$RANK $(nproc)"'
  [ "$(sort <<< "$output")" = $'0 1\n1 1' ]
}

@test "what Open MPI keeps on disk is in the run directory, whatever another user has planted in /tmp" {
  require_mpirun
  mkdir victim
  ln -s ../victim "tmp/ompi.$(hostname).$(id -u)"
  expect=0 run_ddlrun -n 2 --oversubscribe --launcher=mpirun \
    sh -c 'set -- "$DDLRUN_RUN_DIR"/*."$(hostname)".*/*; [ -e "$1" ] && echo "$(ls -A victim | wc -l) $(basename "$(dirname "$1")")"'
  local directory=ompi
  ! mpirun_is_prrte || directory=prterun
  [[ $output == "0 $directory.$(hostname)."*$'\n'"0 $directory.$(hostname)."* ]]
}

# In /dev/shm itself another user could have made the segments before: Open MPI takes them whoever owns them.
@test "Open MPI's shared memory is in a private directory, which goes with the ranks" {
  require_mpirun
  [ -x "${ddlrun%/*}/ddltraind" ] || skip "no ddltraind in this build"
  cat > rank <<SH
"${ddlrun%/*}/ddltraind" --arch=resnet_tiny --classes=10 --image_size=32 --batch_size=2 --threads=1 --backend=cpu --comm=mpi \\
  --mode=training_benchmark --iter_unit=batch --num_iter=100000000 --display_every=100000000 > /dev/null &
for i in \$(seq 600); do
  directory=\$(ls -d /dev/shm/"\${DDLRUN_RUN_DIR##*/}" 2> /dev/null)
  [ -n "\$directory" ] && [ "\$(ls "\$directory" | grep -c _segment)" = 2 ] && break
  sleep 0.05
done
stat -c '%a %u' "\$directory"
[ "\$RANK" = 0 ] || { echo "\$directory" > directory; sleep 0.5; kill -9 \$! \$\$; }
wait
SH
  expect=137 run_ddlrun -n 2 --oversubscribe --launcher=mpirun bash rank
  [ "$output" = "700 $(id -u)"$'\n'"700 $(id -u)" ]
  [ -s directory ]
  [ ! -e "$(cat directory)" ]
  # Nor does a rank leave it that never starts.
  mkdir kept
  expect=69 run_ddlrun -n 2 --oversubscribe --launcher=mpirun --run-dir "$PWD/kept" ./missing
  [ ! -e "/dev/shm/$(ls kept)" ]
}

@test "mpirun that places ranks otherwise is refused by the shim" {
  # A wrapper that starts half of the ranks, each a world of one: what a foreign mpirun does.
  cat > mpirun <<'SH'
#!/bin/sh
[ "$1" != --version ] || exec echo "mpirun (Open MPI) 4.1.4"
while [ "$1" != -- ]; do shim=$1; shift; done
OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 exec "$shim" "$@"
SH
  chmod +x mpirun
  search_path="$PWD:$PATH" expect=78 run_ddlrun -n 2 --oversubscribe touch started
  [[ $messages == *"rank 0: mpirun gives it a world of 1, the plan says 2"* ]]
  [ ! -e started ]
}

# Makes ./mpirun, which says of itself what TEXT says and starts nothing.
foreign_mpirun() { # TEXT
  printf '#!/bin/sh\n[ "$1" = --version ] || exec touch started\ncat << END\n%s\nEND\n' "$1" > mpirun
  chmod +x mpirun
}

@test "an mpirun that is not Open MPI's is refused where it has to be, and what to do is said; auto takes that of Hydra" {
  # As MPICH 4.0.2 of Debian 12 prints it.
  foreign_mpirun $'HYDRA build details:\n    Version:                                 4.0.2\n    Process Manager:                         pmi'
  local refusal="$PWD/mpirun is of MPICH (Hydra 4.0.2), not of Open MPI (--launcher=hydra starts ranks by it)"
  search_path="$PWD:$PATH" expect=69 run_ddlrun -n 2 --oversubscribe --launcher=mpirun true
  [ "$messages" = "ddlrun: [ERROR DDL-20-69] $refusal: load Open MPI ('module load openmpi'), or name its mpirun in the site file (mpirun: PATH); --launcher=srun inside Slurm and --launcher=local on one machine do without" ]
  search_path="$PWD:$PATH" run_ddlrun -n 2 --oversubscribe --dry-run true
  [[ $output == *"+ $PWD/mpirun -bootstrap fork -hosts localhost -n 2 "* ]]
  printf 'rank 0=%s slot=0\n' "$(hostname)" > my.rankfile
  search_path="$PWD:$PATH" expect=69 run_ddlrun -rf my.rankfile true
  [[ $messages == *"$refusal: load Open MPI"* ]]
  foreign_mpirun 'Intel(R) MPI Library for Linux* OS, Version 2021.10 Build 20230619 (id: c2e19c2f3e)'
  search_path="$PWD:$PATH" expect=69 run_ddlrun -n 2 --oversubscribe --launcher=mpirun true
  [[ $messages == *"mpirun is of Intel MPI 2021.10, not of Open MPI (--launcher=hydra starts ranks by it): "* ]]
  [ ! -e started ]
  foreign_mpirun "HPE MPT 2.22"
  search_path="$PWD:$PATH" run_ddlrun -n 2 --oversubscribe sh -c 'echo "$DDLRUN_LAUNCHER"'
  [ "$output" = $'local\nlocal' ]
  search_path="$PWD:$PATH" expect=69 run_ddlrun -H elsewhere1,elsewhere2 true
  [[ $messages == *"ranks on other machines need Open MPI's mpirun, but $PWD/mpirun does not say that it is of Open MPI"* ]]
}

@test "an mpirun that does not answer is not waited for where it is not needed" {
  printf '#!/bin/sh\necho $$ > pid\nexec sleep 600\n' > mpirun
  chmod +x mpirun
  search_path="$PWD:$PATH" run_ddlrun --launcher=auto echo x
  [ "$output" = x ]
  [ "$SECONDS" -lt 25 ]
  # It may have been killed before it had written anything.
  [ ! -s pid ] || wait_for 10 have_ended "$(cat pid)"
}

@test "ranks on two nodes get their environment and their place in both orders" {
  require_mpirun
  make_agent
  for order in node cyclic; do
    expected=$'0 n1 0 x y\n1 n1 1 x y\n2 n2 0 x y\n3 n2 1 x y'
    [ "$order" = node ] || expected=$'0 n1 0 x y\n1 n2 0 x y\n2 n1 1 x y\n3 n2 1 x y'
    MINE='x y' expect=0 run_ddlrun -H n1:2,n2:2 --oversubscribe --rank-order=$order --mpiarg "--mca plm_rsh_agent $PWD/agent" \
      sh -c 'echo "$RANK $DDLRUN_HOST $LOCAL_RANK $MINE"'
    [ "$(sort <<< "$output")" = "$expected" ]
    [[ $messages == *" -x MINE "* ]]
  done
}

@test "a start whose reports mpirun keeps to itself is not taken for one that hangs" {
  require_mpirun
  local argument="--output-filename out:nocopy"
  if mpirun_is_prrte; then argument="--output file=out:nocopy"; fi
  echo "start_seconds: 1" > site.yaml
  expect=0 run_ddlrun --site ./site.yaml --launcher=mpirun -n 1 --mpiarg "$argument" sh -c 'sleep 3; : > ended'
  [ -e ended ]
}

@test "an order to stop while mpirun connects to its hosts ends with 128 + the signal, and no program runs" {
  require_mpirun
  printf '#!/bin/sh\n: > connects\nexec sleep 300\n' > agent
  chmod +x agent
  for signal in TERM INT HUP; do
    rm -f connects
    # A background process of a shell without job control ignores SIGINT.
    env --default-signal=INT "$ddlrun" -H "$(hostname):1,192.0.2.1:1" --mpiarg "--mca plm_rsh_agent $PWD/agent" \
      touch started > /dev/null 2> messages 3>&- &
    pid=$! status=0
    wait_for 20 test -e connects
    kill -"$signal" "$pid"
    wait "$pid" || status=$?
    cat messages
    [ "$status" -eq $((128 + $(kill -l "$signal"))) ]
    [ "$(tail -n 1 messages)" = "ddlrun: stopped by SIG$signal (exit code $status)" ]
    [ ! -e started ]
  done
}

@test "one order to stop ends an mpirun that hangs before it has started anything" {
  cat > mpirun << 'SH'
#!/bin/bash
[ "$1" != --version ] || exec echo "mpirun (Open MPI) 4.1.4"
trap 'echo told >> signals' TERM ALRM
: > hangs
exec 9<> <(:)
while :; do read -r -u 9 -t 600; done
SH
  chmod +x mpirun
  PATH="$PWD:$PATH" "$ddlrun" -n 2 --oversubscribe --launcher=mpirun true > /dev/null 2> messages 3>&- &
  local pid=$! status=0
  wait_for 10 test -e hangs
  kill -TERM "$pid"
  expect=143 end_of "$pid" messages
  [ "$(cat signals)" = told ]
  [ "$(tail -n 1 messages)" = "ddlrun: stopped by SIGTERM (exit code 143)" ]
}

@test "an order to stop while mpirun starts the ranks ends with 128 + the signal" {
  cat > mpirun << 'SH'
#!/bin/bash
[ "$1" != --version ] || exec echo "mpirun (Open MPI) 4.1.4"
while [ "${1##*/}" != ddlrun-rank ]; do shift; done
export OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=1
trap '"$@"; exit 1' TERM
: > starts
exec 9<> <(:)
while :; do read -r -u 9 -t 600; done
SH
  chmod +x mpirun
  PATH="$PWD:$PATH" "$ddlrun" -n 1 --launcher=mpirun touch started > /dev/null 2> messages 3>&- &
  local pid=$! status=0
  wait_for 10 test -e starts
  kill -TERM "$pid"
  expect=143 end_of "$pid" messages
  [ -e started ]
  [ "$(tail -n 1 messages)" = "ddlrun: stopped by SIGTERM (exit code 143)" ]
}

# mpirun passes signals on to ranks that it has started, and to no others.
@test "a rank that fails while mpirun starts the others ends the job at once" {
  require_mpirun
  local began
  for _ in 1 2 3 4 5 6 7 8; do # a start in three is early enough to miss ranks
    began=$SECONDS
    expect=3 run_ddlrun -n 16 --oversubscribe --launcher=mpirun sh -c '[ "$RANK" != 0 ] || exit 3; exec sleep 60'
    [ $((SECONDS - began)) -lt 7 ] # the grace
  done
}

@test "an order to stop reaches ranks whose reports mpirun keeps to itself" {
  require_mpirun
  local argument="--output-filename out:nocopy"
  if mpirun_is_prrte; then argument="--output file=out:nocopy"; fi
  "$ddlrun" --launcher=mpirun -n 1 --mpiarg "$argument" \
    sh -c 'trap "sleep 1; : > saved; exit 75" TERM; : > ready; while :; do sleep 0.05; done' > /dev/null 2>&1 3>&- &
  local pid=$!
  wait_for 10 test -e ready
  kill -TERM "$pid"
  wait "$pid" || true # with the code of mpirun, which is 0 for ranks that it has passed a signal on to
  [ -e saved ]
}

@test "a start is ended whose mpirun has not started any process" {
  printf '#!/bin/sh\n[ "$1" != --version ] || exec echo "mpirun (Open MPI) 4.1.4"\nexec sleep 300\n' > mpirun
  chmod +x mpirun
  echo "start_seconds: 1" > site.yaml
  search_path="$PWD:$PATH" expect=69 run_ddlrun --site ./site.yaml -n 2 --oversubscribe --launcher=mpirun true
  [[ $messages == *"the job failed: its start hung: on $(hostname) not all programs ran when the time for that was over"* ]]
}

@test "kill -9 of a daemon of mpirun leaves no rank, and its node is named" {
  require_mpirun
  make_agent
  "$ddlrun" -H n1:1,n2:1 --mpiarg "--mca plm_rsh_agent $PWD/agent" \
    sh -c 'echo "$$ $(ps -o ppid= -p $PPID)" > "pid$RANK.new"; mv "pid$RANK.new" "pid$RANK"; exec sleep 600' > /dev/null 2> messages 3>&- &
  local pid=$! status=0 rank daemon
  wait_for 20 test -e pid0
  wait_for 20 test -e pid1
  read -r rank daemon < pid1 # the parent of its shim
  kill -KILL "$daemon"
  wait_for 20 have_ended "$rank" "$(cut -d' ' -f1 pid0)"
  wait "$pid" || status=$?
  cat messages
  [ "$status" -ne 0 ]
  [[ $(tail -n 1 messages) == *"the job failed: node n2 was lost" ]]
}

@test "a rank that fails is the exit code, also of an mpirun that is not to abort then" {
  require_mpirun
  ! mpirun_is_prrte || skip "it is a parameter of Open MPI 4"
  export OMPI_MCA_orte_abort_on_non_zero_status=0
  run_ddlrun -n 2 --oversubscribe --launcher=mpirun sh -c 'exit $((RANK * 3))'
  expect_status 3 "$messages"
  [[ ${messages##*$'\n'} == *"the job failed: rank 1 on "*" with exit code 3"* ]]
  run_ddlrun -n 2 --oversubscribe --launcher=mpirun sh -c '[ "$RANK" = 0 ] || kill -KILL $$'
  expect_status 137 "$messages"
}

@test "a user without a name and without HOME, as in a container" {
  require_mpirun
  setpriv --reuid 123456 --regid 123456 --clear-groups true 2> /dev/null || skip "needs root"
  run --separate-stderr setpriv --reuid 123456 --regid 123456 --clear-groups env -C / -i PATH=/usr/bin:/bin \
    "$ddlrun" -n 2 --oversubscribe --launcher=mpirun sh -c 'echo "rank $RANK"'
  expect_status 0 "$stderr"
  [ "$(sort <<< "$output")" = $'rank 0\nrank 1' ]
}
