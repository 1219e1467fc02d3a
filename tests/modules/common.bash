# SPDX-License-Identifier: Apache-2.0
# Shells with Environment Modules or Lmod, and ddlrun installed.

bats_require_minimum_version 1.5.0
load ../installed
load ../module_systems

setup_file() {
  export prefix="$BATS_FILE_TMPDIR/prefix"
  install_ddlrun "$prefix"
}

setup() {
  cd "$BATS_TEST_TMPDIR" || exit 1
}

# use_system environment-modules|lmod FOLDER: in_shell has this one's `module`, and FOLDER of the installed tree in its MODULEPATH.
use_system() {
  module_start "$1" > start
  [ -s start ] || skip "$1 is not here: tools/bootstrap check gets it"
  modulefiles="$prefix/$2"
  echo "module use '$modulefiles'" >> start
}

# in_shell COMMANDS: in a new shell with nothing in its environment but `module`; standard error goes to the standard output.
in_shell() {
  run env -i PATH=/usr/local/bin:/usr/bin:/bin HOME="$PWD" OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
    bash -c ". ./start; { $1; } 2>&1"
  echo "$output"
}
