#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tools/bootstrap on this machine and, with stand-ins for dnf, zypper and rpm that write down what they are asked, on other distributions.

bats_require_minimum_version 1.5.0

setup() {
  bootstrap=$BATS_TEST_DIRNAME/../../tools/bootstrap
  cd "$BATS_TEST_TMPDIR" || exit 1
}

rows() { sed -n "/^all_packages=(/,/^)/s/^  '\(.*\)'$/\1/p" "$bootstrap"; }

@test "every package has a name for each package manager, or says that there is none" {
  [ "$(rows | wc -l)" -gt 40 ]
  while IFS='|' read -r set_name debian dnf zypper rest; do
    echo "$set_name|$debian|$dnf|$zypper|$rest"
    [[ $set_name =~ ^(needed|build|check|pack|cross|peers)\ +$ ]]
    [ -z "$rest" ]
    for names in "$debian" "$dnf" "$zypper"; do
      [[ $names =~ ^(\ +(-|[a-zA-Z0-9.+_/-]+))+\ *$ ]]
    done
    # What nothing is built without has a name everywhere.
    [[ $set_name != needed* || " $debian $dnf $zypper " != *' - '* ]]
  done < <(rows)
}

@test "what is there is left alone, and --list names it" {
  command -v apt-get > /dev/null || skip "this machine has no apt"
  run -0 "$bootstrap" --list
  [[ $output == *libhwloc-dev* && $output != *shellcheck* ]]
  for package in $output; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2> /dev/null)" = installed ] || [[ $package == libjpeg* ]] || skip "$package is not installed"
  done
  run -0 "$bootstrap"
  [[ $output != *installing* ]]
}

# on OS-RELEASE [ARGUMENT...]: runs tools/bootstrap where /etc/os-release is this and the package managers are the stand-ins of ./bin.
# What they were asked is in ./asked. ./lock stands in for the file $locked. Packages in ./installed are there, those in ./lacking are not available.
on() {
  unshare -m true 2> /dev/null || skip "another /etc/os-release needs root and namespaces"
  printf '%s\n' "$1" > os-release
  shift
  touch installed lacking
  rm -f asked
  run --separate-stderr unshare -m sh -c 'mount --bind os-release /etc/os-release && { [ -z "$1" ] || mount --bind lock "$1"; } && shift 2 && PATH=$PWD/bin exec "$@"' _ "${locked-}" _ env -u MODULESHOME -u LMOD_CMD bash "$bootstrap" "$@"
  echo "status $status: $output $stderr"
}

# stand_ins NAME...: these package managers, the compiler of GCC $gcc and CMake $cmake, and the machine's own small tools.
stand_ins() {
  mkdir -p bin
  for tool in bash sh sed sort head grep id env uname cat tee rm awk dirname stat sleep; do ln -sf "$(command -v $tool)" "bin/$tool"; done
  printf '#!/bin/sh\necho "rpm $*" >> asked.rpm\nfor name; do :; done\ngrep -qxF -- "$name" installed\n' > bin/rpm
  for name in "$@"; do
    printf '%s\n' '#!/bin/sh' "echo \"$name \$*\" >> asked" 'for word; do :; done' \
      'case "$*" in *repoquery*) grep -qxF -- "$word" lacking || echo there ;; *search*) ! grep -qxF -- "$word" lacking ;; esac' > "bin/$name"
  done
  printf '#!/bin/sh\ncase $1 in --version) echo "c++ (GCC) %s" ;; *) echo %s ;; esac\n' "${gcc:-14.2.0}" "${gcc:-14.2.0}" > bin/c++
  printf '#!/bin/sh\necho "cmake version %s"\n' "${cmake:-3.26.5}" > bin/cmake
  chmod +x bin/rpm bin/c++ bin/cmake "${@/#/bin/}"
}

# The package manager's install line.
install_line() { grep -E ' install ' asked; }

@test "Fedora: one dnf line with every name, none of them Debian's" {
  stand_ins dnf
  on $'ID=fedora\nVERSION_ID=42'
  [ "$status" -eq 0 ]
  [ "$(install_line)" = "dnf install -y --setopt=install_weak_deps=False gcc-c++ cmake ninja-build pkgconf-pkg-config hwloc-devel yaml-cpp-devel spdlog-devel fmt-devel cli11-devel json-devel libjpeg-turbo-devel expat-devel isa-l-devel protobuf-lite-devel protobuf-compiler gtest-devel gmock-devel ccache onednn-devel openmpi-devel openmpi pmix-devel ucx-devel libpng-devel musl-devel" ]
}

# Lists of packages come with the update alone, and tell which of two names the release has.
@test "an Ubuntu image without lists of packages: those that it has, at the first call" {
  stand_ins apt-get
  printf '%s\n' '#!/bin/sh' 'exit 1' > bin/dpkg-query
  printf '%s\n' '#!/bin/sh' '[ -e updated ] && [ "$2" != libjpeg62-turbo-dev ] && [ "$2" != libclang-rt-dev ]' > bin/apt-cache
  printf '%s\n' '#!/bin/sh' 'echo "apt-get $*" >> asked' 'case $* in *update*) : > updated ;; esac' > bin/apt-get
  chmod +x bin/dpkg-query bin/apt-cache bin/apt-get
  on $'ID=ubuntu\nID_LIKE=debian\nVERSION_ID="22.04"'
  [ "$status" -eq 0 ]
  [[ "$(install_line)" == *" libjpeg-turbo8-dev "* && "$(install_line)" != *libjpeg62* ]]
}

@test "an apt that is at work already is named and waited for" {
  stand_ins apt-get
  printf '%s\n' '#!/bin/sh' 'exit 1' > bin/dpkg-query
  printf '%s\n' '#!/bin/sh' 'echo "apt-get $*" >> asked; [ ! -e held ] || echo early >> asked' > bin/apt-get
  printf '%s\n' '#!/bin/sh' > bin/apt-cache
  chmod +x bin/dpkg-query bin/apt-cache bin/apt-get
  touch lock held
  python3 -c 'import fcntl, os, time
with open("lock", "w") as lock:
    fcntl.lockf(lock, fcntl.LOCK_EX)
    time.sleep(4)
    os.unlink("held")' 3>&- &
  holder=$!
  until grep -q " WRITE $holder " /proc/locks; do sleep 0.1; done
  locked=/var/lib/dpkg/lock-frontend
  on $'ID=ubuntu\nID_LIKE=debian\nVERSION_ID="22.04"'
  wait $holder
  [ "$status" -eq 0 ]
  [[ $stderr == *"waiting for another apt, 300 s at most: process $holder holds /var/lib/dpkg/lock-frontend"* ]]
  [ "$(grep -c 'waiting for' <<< "$stderr")" -eq 1 ]
  grep -q '^apt-get -o DPkg::Lock::Timeout=300 update' asked
  grep -q '^apt-get -o DPkg::Lock::Timeout=300 install' asked
  run ! grep early asked
}

@test "what is installed already is not asked for again" {
  stand_ins dnf
  printf '%s\n' gcc-c++ cmake ccache > installed
  on $'ID=fedora\nVERSION_ID=42'
  [[ "$(install_line)" == *"weak_deps=False ninja-build pkgconf"*"gmock-devel onednn-devel "* ]]
}

@test "Rocky 8 without EPEL: the two repositories to enable, and nothing installed" {
  stand_ins dnf
  echo cli11-devel > lacking
  on $'ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="8.10"'
  [ "$status" -eq 69 ]
  [[ $stderr == *"not in the repositories that are enabled: cli11-devel."*"dnf config-manager --set-enabled powertools"* ]]
  run ! install_line
  on $'ID="almalinux"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.4"'
  [[ $stderr == *"--set-enabled crb"* ]]
  on $'ID="rhel"\nID_LIKE="fedora"\nVERSION_ID="9.4"'
  [[ $stderr == *"codeready-builder-for-rhel-9-"*"epel-release-latest-9.noarch.rpm"* ]]
}

@test "Rocky 8 with EPEL: gcc-toolset beside the old compiler, which is named with what to load" {
  gcc=8.5.0 cmake=3.18.4 stand_ins dnf
  echo epel-release > installed
  on $'ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="8.10"'
  [ "$status" -eq 69 ]
  [[ "$(install_line)" == *" gcc-toolset-12-gcc-c++" ]]
  [[ $stderr == *"c++ is GCC 8.5.0; GCC 12 or clang 14 is needed for C++20"*"source /opt/rh/gcc-toolset-12/enable"*"module load gcc/12"* ]]
  [[ $stderr == *"CMake is 3.18.4; 3.20 is needed: pip install cmake, or module load cmake"* ]]
}

@test "a compiler and a CMake that are just new enough are taken" {
  gcc=12.1.0 cmake=3.20.0 stand_ins dnf
  on $'ID=fedora\nVERSION_ID=42'
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  gcc=11.5.0 cmake=3.20.0 stand_ins dnf
  on $'ID=fedora\nVERSION_ID=42'
  [ "$status" -eq 69 ]
  gcc=12.1.0 cmake=3.19.9 stand_ins dnf
  on $'ID=fedora\nVERSION_ID=42'
  [ "$status" -eq 69 ]
}

@test "a package that nothing is built without, and that the release lacks, ends it; another is left out" {
  stand_ins dnf
  echo onednn-devel > lacking
  on $'ID=fedora\nVERSION_ID=42'
  [ "$status" -eq 0 ]
  [[ $output == *"not in this release, going on without it: onednn-devel"* ]]
  [[ "$(install_line)" != *onednn* ]]
  echo spdlog-devel > lacking
  on $'ID=fedora\nVERSION_ID=42'
  [ "$status" -eq 69 ]
  [[ $stderr == *"which this release does not have: spdlog-devel. Install them from their sources"* ]]
  run ! install_line
}

@test "openSUSE Leap 15: zypper's names, a newer compiler, the Open MPI that there is" {
  stand_ins zypper
  printf '%s\n' openmpi5-devel openmpi5 > lacking
  on $'ID="opensuse-leap"\nID_LIKE="suse opensuse"\nVERSION_ID="15.6"'
  [ "$status" -eq 0 ]
  [ "$(install_line)" = "zypper --non-interactive install --no-recommends gcc-c++ cmake ninja pkg-config hwloc-devel yaml-cpp-devel spdlog-devel fmt-devel cli11-devel nlohmann_json-devel libjpeg8-devel libexpat-devel isa-l-devel protobuf-devel gtest gmock ccache onednn-devel openmpi4-devel openmpi4 pmix-devel libucp-devel libucs-devel openucx-tools libpng16-devel gcc12-c++" ]
  gcc=7.5.0 stand_ins zypper
  on $'ID="opensuse-leap"\nID_LIKE="suse opensuse"\nVERSION_ID="15.6"'
  [ "$status" -eq 69 ]
  [[ $stderr == *"export CC=gcc-12 CXX=g++-12"* ]]
}

@test "neither apt, dnf nor zypper: the names, and 69" {
  stand_ins
  on $'ID=arch'
  [ "$status" -eq 69 ]
  [[ $stderr == *"neither apt, dnf nor zypper"*libhwloc-dev* ]]
}

@test "a site with modules is told what to load" {
  stand_ins dnf
  export LMOD_CMD=/usr/share/lmod
  printf '%s\n' 'ID=fedora' > os-release
  run unshare -m sh -c 'mount --bind os-release /etc/os-release && touch installed lacking && PATH=$PWD/bin exec bash "$1"' _ "$bootstrap"
  [ "$status" -eq 0 ] || skip "needs root and namespaces"
  [[ $output == *"module load gcc/12 openmpi cuda cudnn nccl"* ]]
}

@test "misuse is 64" {
  run -64 "$bootstrap" everything
  [[ $output == *"unknown set 'everything'"* ]]
}
