#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The installed modulefiles under Environment Modules and Lmod.

load common

programs_and_manual_are_found() {
  in_shell 'module load ddlrun && command -v ddlrun bede-ddlrun ddltraind && bede-ddlrun -n 1 echo started'
  [ "$status" -eq 0 ]
  [ "${lines[0]}" = "$prefix/bin/ddlrun" ]
  [ "${lines[1]}" = "$prefix/bin/bede-ddlrun" ]
  [ "${lines[2]}" = "$prefix/bin/ddltraind" ]
  [ "${lines[-1]}" = started ]
  if [ -d "$prefix/share/man" ] && command -v man > /dev/null; then
    for manual_path in '' /usr/share/man :/usr/share/man /usr/share/man:; do
      in_shell "${manual_path:+export MANPATH=$manual_path;} module load ddlrun && man -w bede-ddlrun ddlrun"
      [ "${lines[0]}" = "$prefix/share/man/man1/bede-ddlrun.1" ]
      [ "${lines[1]}" = "$prefix/share/man/man1/ddlrun.1" ]
    done
  fi
}

the_system_manual_stays() {
  command -v manpath > /dev/null || skip "man is not installed"
  for manual_path in '' /usr/share/man :/usr/share/man /usr/share/man:; do
    in_shell "${manual_path:+export MANPATH=$manual_path;} man -w ls; manpath -q; module load ddlrun; man -w ls; manpath -q"
    [ "${lines[0]}" = "${lines[2]}" ] # the page, or what man says on a system without pages
    # Each directory that was searched before still is.
    for directory in ${lines[1]//:/ }; do
      [[ ":${lines[3]}:" == *":$directory:"* ]]
    done
  done
}

# What the module system keeps for itself is left out.
unload_leaves_no_trace() {
  local show='env | LC_ALL=C sort | grep -vE "^(LOADEDMODULES|_LMFILES_|__MODULES_[A-Z_]+|_ModuleTable[0-9]+_|_ModuleTable_Sz_|__LMOD_[A-Z_]+|_)="'
  for change in : 'export MANPATH=/usr/share/man' 'export MANPATH=:/usr/share/man' 'export DDLRUN_SITE=bede'; do
    in_shell "$change; module list; $show > before; module load ddlrun; $show > during; module unload ddlrun; $show > after"
    [ "$status" -eq 0 ]
    run ! cmp before during
    diff before after
  done
}

it_says_what_it_is() {
  in_shell 'module avail; module whatis ddlrun; module help ddlrun'
  [[ $output == *"ddlrun/$("$prefix/bin/ddlrun" --version | sed -n '1s/.* //p')"* ]]
  [[ $output == *"Description: starts one rank of a program per GPU"* ]]
  [[ $output == *"bede-ddlrun python train.py"*"$prefix/share/ddlrun/slurm-templates"* ]]
}

two_versions_are_never_loaded_at_once() {
  local installed
  installed=$(echo "$modulefiles"/ddlrun/*)
  mkdir ddlrun
  sed "s#$prefix#/opt/other#" "$installed" > "ddlrun/9.9${installed##*[0-9]}"
  in_shell 'module use "$PWD"; module load ddlrun/9.9; module load ddlrun/'"$(basename "$installed" .lua)"'; echo "path=$PATH"'
  [ "$(tr -s := '\n' <<< "${lines[-1]}" | grep -cxE "($prefix|/opt/other)/bin")" -eq 1 ]
}

# A package of the distribution: /usr/bin in front of PATH would hide the user's own python.
a_system_package_leaves_path_alone() {
  DESTDIR="$PWD/stage" install_ddlrun /usr
  in_shell "export PATH=/opt/conda/bin:\$PATH MANPATH=/opt/man; module use '$PWD/stage/usr/$1'; module load ddlrun; module list; echo \"\$PATH \$MANPATH\""
  [[ $output == *"ddlrun/"* ]]
  [[ "${lines[-1]}" == "/opt/conda/bin:/usr/local/bin:/usr/bin:/bin /opt/man" ]]
}

@test "Environment Modules: a package of the distribution leaves PATH alone" {
  use_system environment-modules nothing
  a_system_package_leaves_path_alone share/modulefiles
}

@test "Lmod: a package of the distribution leaves PATH alone" {
  use_system lmod nothing
  a_system_package_leaves_path_alone share/lmod-modulefiles
}

@test "Environment Modules: programs and manual are found" {
  use_system environment-modules share/modulefiles
  programs_and_manual_are_found
}

@test "Environment Modules: the manual of the system stays in reach" {
  use_system environment-modules share/modulefiles
  the_system_manual_stays
}

@test "Environment Modules: unload leaves the environment as it was" {
  use_system environment-modules share/modulefiles
  unload_leaves_no_trace
}

@test "Environment Modules: it says what it is" {
  use_system environment-modules share/modulefiles
  it_says_what_it_is
}

@test "Environment Modules: two versions are never loaded at once" {
  use_system environment-modules share/modulefiles
  two_versions_are_never_loaded_at_once
}

@test "Lmod: programs and manual are found" {
  use_system lmod share/lmod-modulefiles
  programs_and_manual_are_found
}

@test "Lmod: the manual of the system stays in reach" {
  use_system lmod share/lmod-modulefiles
  the_system_manual_stays
}

@test "Lmod: unload leaves the environment as it was" {
  use_system lmod share/lmod-modulefiles
  unload_leaves_no_trace
}

@test "Lmod: it says what it is" {
  use_system lmod share/lmod-modulefiles
  it_says_what_it_is
}

@test "Lmod: two versions are never loaded at once" {
  use_system lmod share/lmod-modulefiles
  two_versions_are_never_loaded_at_once
}

@test "Lmod with the Tcl modulefile: programs and manual are found" {
  use_system lmod share/modulefiles
  programs_and_manual_are_found
}

@test "Lmod with the Tcl modulefile: the manual of the system stays in reach" {
  use_system lmod share/modulefiles
  the_system_manual_stays
}

@test "Lmod with the Tcl modulefile: unload leaves the environment as it was" {
  use_system lmod share/modulefiles
  unload_leaves_no_trace
}

@test "Lmod with the Tcl modulefile: it says what it is" {
  use_system lmod share/modulefiles
  it_says_what_it_is
}

@test "Lmod with the Tcl modulefile: two versions are never loaded at once" {
  use_system lmod share/modulefiles
  two_versions_are_never_loaded_at_once
}
