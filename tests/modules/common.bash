# SPDX-License-Identifier: Apache-2.0
# Shells with Environment Modules or Lmod. Debian's packages of the two exclude each other, so tools/bootstrap unpacks both into
# build/module-systems and installs neither; where one is installed by other means, that one is taken.

bats_require_minimum_version 1.5.0
load ../installed

setup_file() {
  export prefix="$BATS_FILE_TMPDIR/prefix"
  install_ddlrun "$prefix"
}

setup() {
  cd "$BATS_TEST_TMPDIR" || exit 1
}

# use_system environment-modules|lmod FOLDER: in_shell has this one's `module`, and FOLDER of the installed tree in its MODULEPATH.
use_system() {
  local unpacked="$BATS_TEST_DIRNAME/../../build/module-systems/$1" root='' init candidates
  modulefiles="$prefix/$2"
  case $1 in
    environment-modules) candidates=(/usr/share/modules/init/bash /usr/share/Modules/init/bash) ;;
    lmod) candidates=(/usr/share/lmod/lmod/init/bash) ;;
  esac
  [ ! -d "$unpacked" ] || root=$(cd "$unpacked" && pwd)
  for init in "${candidates[@]}"; do
    [ -e "$root$init" ] || continue
    {
      # The packages know themselves by absolute paths.
      sed "s#/usr/\(lib\|share\)/#$root&#g" "$root$init"
      echo "module use '$modulefiles'"
    } > start
    return
  done
  skip "$1 is not here: tools/bootstrap check gets it"
}

# shellcheck disable=SC2154 # run sets output
# in_shell COMMANDS: in a new shell with nothing in its environment but `module`; standard error goes to the standard output.
in_shell() {
  run env -i PATH=/usr/local/bin:/usr/bin:/bin HOME="$PWD" OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
    bash -c ". ./start; { $1; } 2>&1"
  echo "$output"
}
