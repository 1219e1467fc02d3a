# SPDX-License-Identifier: Apache-2.0
# What the tests of ddlrun share.

load ../common

setup() {
  ddlrun="$DDLRUN_BUILD/bin/ddlrun"
  enter_test_directory
}

teardown() { require_no_run_directory; }

# Runs ddlrun: status, standard output in $output, the rest in $messages. $search_path: its PATH, if set.
run_ddlrun() {
  run_separate env PATH="${search_path:-$PATH}" "$ddlrun" "$@"
}

# The launchers that are here, or those of $LAUNCHERS.
launchers() {
  local launcher
  for launcher in ${LAUNCHERS:-local mpirun hydra}; do
    case $launcher in
      mpirun) command -v mpirun > /dev/null || continue ;;
      hydra) command -v mpiexec.hydra > /dev/null || continue ;;
    esac
    echo "$launcher"
  done
}

# Whether all these processes are gone, or zombies that their parent has not collected.
have_ended() {
  local pid
  for pid in "$@"; do
    [ ! -e "/proc/$pid" ] || grep -q '^State:.*Z' "/proc/$pid/status" 2> /dev/null || return 1
  done
}

# Makes ./agent, instead of ssh: the other nodes are this machine, each with a place of its own for Open MPI's files.
make_agent() {
  printf '#!/bin/sh\nmkdir -p "$TMPDIR/$1"\nexport TMPDIR="$TMPDIR/$1"\nshift\nexec sh -c "$*"\n' > agent
  chmod +x agent
}
