#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Programs that cannot start, and places in which they cannot: what is said of them.

# shellcheck disable=SC2016 # the ranks' shells expand, not ours

load common

# make_elf FILE MACHINE: the header of a program of 64 bits, least byte first, for the machine of this number (two bytes in octal), with
# words behind it that a shell would run.
make_elf() {
  printf '\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\2\0'"$2"'\1\0\0\0\0\20\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\100\0\70\0\0\0\0\0\0\0\0\0\ntouch was-run\n' > "$1"
  chmod +x "$1"
}

# says LAUNCHER PROGRAM TEXT: ddlrun refuses the program with 69 and this text, starts it once, and runs nothing of it.
says() {
  run_ddlrun -n 1 --launcher="$1" --max-restarts 2 "$2" one two
  echo "$messages"
  [ "$status" -eq 69 ]
  [ ! -e was-run ]
  [ "$(grep -c "^ddlrun-rank: .*cannot start '$2': .*$3" <<< "$messages")" -eq 1 ]
}

@test "a program of another machine is named as one, and nothing of it is run" {
  make_elf of_power '\25\0'
  make_elf of_arm '\267\0'
  make_elf of_intel '\76\0'
  local launcher name number
  for launcher in local mpirun; do
    [ "$launcher" = local ] || require_mpirun
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
  mkdir folder
  printf 'import this\n' > train.py
  local launcher
  for launcher in local mpirun; do
    [ "$launcher" = local ] || require_mpirun
    says $launcher ./empty 'the file is empty'
    says $launcher ./marked 'byte order mark'
    says $launcher ./code.py 'write python ./code.py'
    says $launcher ./data 'it is data, and no program'
    says $launcher ./script 'not its interpreter no-such-python'
    says $launcher ./folder 'it is a directory'
    says $launcher ./train.py 'write python ./train.py'
    says $launcher train.py 'write python train.py'
    says $launcher FOO=1 'write -x FOO=1 before the program'
  done
}
