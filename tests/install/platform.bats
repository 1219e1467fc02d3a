#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tools/platform, with this machine's own root directory in the place of another distribution's: nothing is fetched.

bats_require_minimum_version 1.5.0
load ../wait_for

setup() {
  platform=$BATS_TEST_DIRNAME/../../tools/platform
  # A tree of its own: what tools/platform needs of one.
  tree=$BATS_TEST_TMPDIR/tree
  mkdir -p "$tree/tools"
  cp "$platform" "$BATS_TEST_DIRNAME/../../tools/bootstrap" "$tree/tools"
  git init -q "$tree"
  printf '/build/\n' > "$tree/.gitignore"
  echo first > "$tree/source"
  export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
  cache=$XDG_CACHE_HOME/ddlrun/platform
}

# In the place of Debian 13: this machine.
have_debian13() {
  local program
  [ "$(id -u)" -eq 0 ] || skip "namespaces need root"
  unshare -m -p -f true 2> /dev/null || skip "this machine allows no namespaces"
  for program in debootstrap git; do command -v $program > /dev/null || skip "there is no $program"; done
  apt-get update --print-uris | grep -q '/debian/*/dists/' || skip "apt names no mirror of Debian"
  mkdir -p "$cache"
  ln -s / "$(root)"
}

root() { echo "$cache/debian13-$(sed -n '/_packages=(/,/^)/p' "$tree/tools/bootstrap" | sha256sum | cut -c1-12)"; }

debian13() { "$tree/tools/platform" debian13 "$@"; }

@test "misuse is 64, help is not" {
  run -64 "$platform"
  [[ $output == *"usage: tools/platform DISTRIBUTION"* ]]
  run -64 "$platform" debian9
  [ "$output" = "tools/platform: unknown distribution 'debian9': debian11 debian12 debian13 testing debian12-minimal debian13-minimal or all" ]
  run -64 "$platform" debian12-minimal
  [ "$output" = "tools/platform: nothing is built in debian12-minimal; what is to run there? tests/packages/in-clean-root" ]
  run -0 "$platform" --help
  [[ $output == *"usage: tools/platform DISTRIBUTION"* ]]
}

@test "what is missing is 69, in one line" {
  have_debian13
  chmod -R a+rwX "$BATS_TEST_TMPDIR" "$BATS_RUN_TMPDIR"
  run -69 setpriv --reuid 65534 --regid 65534 --clear-groups "$tree/tools/platform" debian13 true
  [ "$output" = "tools/platform: namespaces and mounts need root; debian13 is not to be had here" ]
  printf 'Dir::Etc::SourceList "/dev/null"; Dir::Etc::SourceParts "/dev/null";\n' > "$BATS_TEST_TMPDIR/apt.conf"
  APT_CONFIG=$BATS_TEST_TMPDIR/apt.conf run -69 debian13 true
  [ "$output" = "tools/platform: apt names no mirror of Debian; debian13 is not to be had here" ]
}

@test "a mirror that does not answer is 69, and half a root is no root" {
  have_debian13
  rm "$cache"/debian13-*
  mkdir "$BATS_TEST_TMPDIR/apt"
  echo 'deb http://127.0.0.1:9/debian trixie main' > "$BATS_TEST_TMPDIR/apt/nowhere.list"
  printf 'Dir::Etc::SourceList "/dev/null"; Dir::Etc::SourceParts "%s";\n' "$BATS_TEST_TMPDIR/apt" > "$BATS_TEST_TMPDIR/apt.conf"
  APT_CONFIG=$BATS_TEST_TMPDIR/apt.conf run debian13 true
  echo "$output"
  [ "$status" -eq 69 ]
  [[ $(tail -n 1 <<< "$output") == "tools/platform: its packages could not be installed (log: $cache/debian13-"*"debian13 is not to be had here" ]]
  [ -z "$(find "$cache" -maxdepth 1 -type d -name 'debian13-*')" ]
}

@test "a command runs on the sources as they are, and its exit status counts" {
  have_debian13
  run debian13 sh -c 'cat source; pwd; exit 7'
  echo "$output"
  [ "$status" -eq 7 ]
  [ "$output" = $'first\n/srv/ddlrun' ]
  # What was changed, added and removed since; what a command made is kept.
  debian13 sh -c 'mkdir build; echo made > build/made; touch stray'
  echo second > "$tree/source"
  echo new > "$tree/new"
  rm "$tree/.gitignore"
  printf '/build/\n' > "$tree/.git/info/exclude"
  run -0 debian13 sh -c 'cat source build/made; ls -A'
  [ "$output" = $'second\nmade\nbuild\nnew\nsource\ntools' ]
}

@test "a run changes neither this machine nor the next distribution" {
  have_debian13
  debian13 touch /etc/made-by-a-run
  [ ! -e /etc/made-by-a-run ]
  [ -e "$tree/build/platform/debian13/upper/etc/made-by-a-run" ]
  debian13 test -e /etc/made-by-a-run
  run ! grep -q "$tree" /proc/mounts
  # A root of other packages: nothing of the old directory is left in it.
  sed -i 's/^all_packages=(/& # another/' "$tree/tools/bootstrap"
  have_debian13
  run ! debian13 test -e /etc/made-by-a-run
}

@test "where there is no overlay, a copy" {
  have_debian13
  # A root small enough to copy: a static busybox would do; the loader, sh and what it is linked with are here.
  rm "$cache"/debian13-*
  root=$(root)
  mkdir -p "$root"/{proc,sys,dev,mnt,etc/apt/apt.conf.d}
  for file in sh env cat touch umount; do
    cp --parents -L "$(command -v $file)" $(ldd "$(command -v $file)" | grep -o '/[^ ]*') "$root"
  done
  for directory in bin lib lib64; do [ ! -L /$directory ] || [ -e "$root/$directory" ] || ln -s usr/$directory "$root/$directory"; done
  mkdir "$BATS_TEST_TMPDIR"/{upper,work}
  # An upper layer cannot be on an overlay itself.
  run unshare -m sh -c 'mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" "$1" && shift 2 && exec "$@"' \
    sh "$tree" "$BATS_TEST_TMPDIR" "$tree/tools/platform" debian13 sh -c 'cat source; touch /mark'
  echo "$output"
  [ "$status" -eq 0 ]
  [ "$output" = first ]
  [ -e "$BATS_TEST_TMPDIR/upper/build/platform/debian13/root/mark" ]
  [ ! -e "$root/mark" ]
}

@test "killed, it takes all it has started with it" {
  have_debian13
  for signal in TERM KILL INT; do
    env --default-signal=INT "$tree/tools/platform" debian13 sh -c "sleep 1000.$$ & touch /var/cache/ccache/started; wait" 3>&- &
    pid=$!
    wait_for 20 test -e "$cache/ccache/started"
    kill -$signal $pid
    wait_for 10 nothing_runs
    run ! grep -q "$tree" /proc/mounts
    rm -r "$tree/build/platform" "$cache/ccache/started"
  done
}

nothing_runs() { ! pgrep -f "sleep 1000.$$" > /dev/null && ! pgrep -f "$tree/tools/platform" > /dev/null; }

@test "two runs in one directory take turns" {
  have_debian13
  # The one directory that a run shares with this machine.
  debian13 sh -c 'cd /var/cache/ccache; touch started; until [ -e go ]; do sleep 0.1; done; echo first' > "$BATS_TEST_TMPDIR/one" 3>&- &
  wait_for 20 test -e "$cache/ccache/started"
  debian13 echo second > "$BATS_TEST_TMPDIR/two" 2>&1 3>&- &
  wait_for 10 grep -q "waiting for another run in $tree/build/platform/debian13" "$BATS_TEST_TMPDIR/two"
  run ! grep -q second "$BATS_TEST_TMPDIR/two"
  touch "$cache/ccache/go"
  wait
  grep -qx first "$BATS_TEST_TMPDIR/one"
  grep -qx second "$BATS_TEST_TMPDIR/two"
}

@test "without a command: a new directory, every stage, a row of what was seen" {
  have_debian13
  # In the place of the real one, which takes an hour.
  cat > "$tree/tools/check" << 'END'
#!/bin/sh
echo "stage $1"
case $1 in
  build) [ ! -e /etc/left ] ;;
  unit) echo "100% tests passed, 0 tests failed out of 12" ;;
  cluster) echo "50% tests passed, 2 tests failed out of 4"; exit 1 ;;
esac
END
  chmod +x "$tree/tools/check"
  debian13 touch /etc/left
  run debian13
  echo "$output"
  [ "$status" -eq 1 ]
  local versions='[^|]+ \| [^|]+ \| [^|]+ \| [^|]+ \| [^|]+'
  [[ $(tail -n 1 <<< "$output") =~ ^"| debian13 | "$versions" | ok, "[0-9]+" s | 12 of 12, "[0-9]+" s | ok, "[0-9]+" s | failed, 2 of 4, "[0-9]+" s |"$ ]]
  [ "$(cat "$tree/build/platform/debian13/row")" = "$(tail -n 1 <<< "$output")" ]
  grep -qx 'stage unit' "$tree/build/platform/debian13/unit.log"
}
