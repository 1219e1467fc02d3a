# SPDX-License-Identifier: Apache-2.0
# What the tests end to end share: a clean environment in a directory of the test's own, and ways to wait without guessing times.

bats_require_minimum_version 1.5.0
load ../../wait_for

# In setup: a directory, in it a TMPDIR; no setting of the user and no job of Slurm.
enter_test_directory() {
  cd "$BATS_TEST_TMPDIR" || exit 1
  mkdir tmp
  export TMPDIR="$BATS_TEST_TMPDIR/tmp"
  # In an ASan build: hwloc unloads a plug-in of the system that leaks.
  export ASAN_OPTIONS=detect_leaks=0
  export TERM=xterm # of the terminals that tests make
  unset DDLRUN_SITE SLURM_TMPDIR XDG_RUNTIME_DIR OMP_NUM_THREADS MASTER_ADDR MASTER_PORT
  local name
  # $LAUNCHERS: the tests run in a job.
  [ -n "${LAUNCHERS:-}" ] || for name in $(compgen -v SLURM); do unset "$name"; done
}

# run_separate COMMAND...: its exit code in $status, standard output in $output, the rest in $messages. expect=CODE before it, or before
# a function that calls it: where the exit code is another, all is shown and the test fails.
run_separate() {
  run --separate-stderr "$@"
  messages=$stderr
  [ "$status" = "${expect:-$status}" ] || {
    echo "exit code $status, not $expect, of $*: $output"$'\n'"$messages"
    return 1
  }
}

# end_of PID [FILE...]: waits for a process in the background and shows the files: its exit code in $status, which is $expect if that is set.
end_of() {
  status=0
  wait "$1" || status=$?
  [ $# -eq 1 ] || cat "${@:2}"
  [ "$status" = "${expect:-$status}" ]
}

# Every test leaves no run directory behind.
no_run_directory() {
  ! compgen -G "$BATS_TEST_TMPDIR/tmp/ddlrun.*" > /dev/null
}

# In teardown.
require_no_run_directory() {
  no_run_directory || {
    echo "left behind in tmp: $(ls "$BATS_TEST_TMPDIR/tmp")"
    return 1
  }
}

# Whether it is of Open MPI 5 or later, whose runtime is PRRTE.
mpirun_is_prrte() {
  [[ $(mpirun --version 2>&1) == *"(Open MPI) "[5-9]* ]]
}

require_mpirun() {
  command -v mpirun > /dev/null || skip "mpirun is not installed"
}
