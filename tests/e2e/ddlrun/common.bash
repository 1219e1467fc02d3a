# SPDX-License-Identifier: Apache-2.0
# What the tests of ddlrun share: a clean environment, and ways to wait without guessing times.

bats_require_minimum_version 1.5.0

setup() {
  ddlrun="$DDLRUN_BUILD/bin/ddlrun"
  cd "$BATS_TEST_TMPDIR" || exit 1
  mkdir tmp
  export TMPDIR="$BATS_TEST_TMPDIR/tmp"
  # In an ASan build: hwloc unloads a plug-in of the system that leaks.
  export ASAN_OPTIONS=detect_leaks=0
  unset DDLRUN_SITE SLURM_TMPDIR OMP_NUM_THREADS MASTER_ADDR MASTER_PORT
  local name
  for name in $(compgen -v SLURM_); do unset "$name"; done
}

# Every test leaves no run directory behind.
teardown() {
  no_run_directory || {
    echo "left behind in tmp: $(ls "$BATS_TEST_TMPDIR/tmp")"
    return 1
  }
}

no_run_directory() {
  ! compgen -G "$BATS_TEST_TMPDIR/tmp/ddlrun.*" > /dev/null
}

# Runs ddlrun: status, standard output in $output, the rest in $messages. $search_path: its PATH, if set.
run_ddlrun() {
  run --separate-stderr env PATH="${search_path:-$PATH}" "$ddlrun" "$@"
  # shellcheck disable=SC2034,SC2154 # read by the tests; set by run
  messages=$stderr
}

# wait_for SECONDS COMMAND...: until the command succeeds.
wait_for() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$end" ] || return 1
    sleep 0.05
  done
}

# Whether all these processes are gone, or zombies that their parent has not collected.
have_ended() {
  local pid
  for pid in "$@"; do
    [ ! -e "/proc/$pid" ] || grep -q '^State:.*Z' "/proc/$pid/status" 2> /dev/null || return 1
  done
}

require_mpirun() {
  command -v mpirun > /dev/null || skip "mpirun is not installed"
}
