#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What cmake --install leaves behind, and that it works from there.

bats_require_minimum_version 1.5.0
load ../installed

setup_file() {
  export prefix="$BATS_FILE_TMPDIR/prefix"
  install_ddlrun "$prefix"
  version=$("$prefix/bin/ddlrun" --version | sed -n '1s/.* //p')
  export version
}

setup() {
  cd "$BATS_TEST_TMPDIR" || exit 1
  unset DDLRUN_SITE
  local name
  for name in $(compgen -v SLURM_); do unset "$name"; done
}

has_cuda() { [ -e "$DDLRUN_BUILD/lib/ddlrun/ddltrain_cuda.so" ]; }
has_mpi() { [ -e "$DDLRUN_BUILD/lib/ddlrun/ddltrain_mpi.so" ]; }
modules() { find "$prefix/lib/ddlrun" -type f 2> /dev/null || :; }

@test "a relative prefix is whole in the modulefiles" {
  cmake --install "$DDLRUN_BUILD" --prefix relative > /dev/null
  grep -qF "set prefix {$PWD/relative}" "relative/share/modulefiles/ddlrun/$version"
  grep -qF "$PWD/relative" "relative/share/lmod-modulefiles/ddlrun/$version.lua"
}

# Packages are made of the components: a file in none would be in no package, a file in two in both.
@test "every file belongs to exactly one component" {
  for component in launcher trainer cuda doc; do
    cmake --install "$DDLRUN_BUILD" --prefix "$PWD/$component" --component $component > /dev/null
    mkdir -p $component # empty without CUDA
    (cd $component && find . ! -type d)
  done | LC_ALL=C sort > of_components
  (cd "$prefix" && find . ! -type d) | LC_ALL=C sort | diff - of_components
  # What ddlrun's own package must bring.
  [ -e launcher/bin/ddlrun ] && [ -e launcher/bin/ddlctl ] && [ -e launcher/bin/ddl-rankfile ]
  [ -e trainer/bin/ddltraind ] && [ -e trainer/bin/ddldata ] && [ -e trainer/bin/ddlbench ]
  [ ! -e trainer/share/ddlrun ] && [ ! -e trainer/libexec ] && [ -z "$(ls cuda/bin 2> /dev/null)" ]
  [ -e doc/share/doc/ddlrun/doc/user-guide.md ]
}

@test "every part is in its place, and nothing else" {
  run sh -c 'cd "$prefix" && find . ! -type d | LC_ALL=C sort'
  has_cuda || output+=$'\n./lib/ddlrun/ddltrain_cuda.so' # left out where there is no CUDA
  has_mpi || output+=$'\n./lib/ddlrun/ddltrain_mpi.so'
  diff <(grep -vE '^./share/(man|bash-completion|doc/ddlrun/doc/(decisions|performance|reference|user-guide))/' <<< "$output" | LC_ALL=C sort) - <<EOF
./bin/bede-ddlrun
./bin/bede-mpirun
./bin/ddl-rankfile
./bin/ddlbench
./bin/ddlctl
./bin/ddldata
./bin/ddlrun
./bin/ddltraind
./lib/ddlrun/ddltrain_cuda.so
./lib/ddlrun/ddltrain_mpi.so
./libexec/ddlrun/ddlrun-node-check
./libexec/ddlrun/ddlrun-rank
./libexec/ddlrun/ddlrun-rank-check
./libexec/ddlrun/ddlrun-rank-energy
./share/ddlrun/sites/bede.yaml
./share/ddlrun/sites/generic.yaml
./share/ddlrun/sites/x86-v100.yaml
./share/ddlrun/slurm-templates/bede-resnet50-1.sbatch
./share/ddlrun/slurm-templates/bede-resnet50-16.sbatch
./share/ddlrun/slurm-templates/bede-resnet50-32.sbatch
./share/ddlrun/slurm-templates/bede-resnet50-4.sbatch
./share/ddlrun/slurm-templates/container.sbatch
./share/ddlrun/slurm-templates/interactive.sh
./share/ddlrun/slurm-templates/multi-node.sbatch
./share/ddlrun/slurm-templates/requeue.sbatch
./share/ddlrun/slurm-templates/scaling.sbatch
./share/ddlrun/slurm-templates/single-node.sbatch
./share/doc/ddlrun/CHANGELOG.md
./share/doc/ddlrun/README.md
./share/doc/ddlrun/SECURITY.md
./share/doc/ddlrun/doc/administrators-guide.md
./share/doc/ddlrun/doc/architecture.md
./share/doc/ddlrun/doc/benchmarking.md
./share/doc/ddlrun/doc/formats.md
./share/doc/ddlrun/doc/glossary.md
./share/doc/ddlrun/doc/performance.md
./share/doc/ddlrun/doc/platforms.md
./share/doc/ddlrun/doc/reference.md
./share/doc/ddlrun/doc/report.png
./share/doc/ddlrun/doc/scaling.md
./share/doc/ddlrun/doc/security.md
./share/doc/ddlrun/doc/user-guide.md
./share/lmod-modulefiles/ddlrun/$version.lua
./share/modulefiles/ddlrun/$version
EOF
}

# PMIx and UCX, which need two dozen others, are loaded by the check alone.
@test "the programs of the launcher need no library of MPI's world" {
  for program in "$prefix"/bin/{ddlrun,ddlctl,ddl-rankfile} "$prefix"/libexec/ddlrun/*; do
    run readelf -dW "$program"
    echo "$program: $output"
    run ! grep -E 'NEEDED.*lib(pmix|ucp|ucs|mpi|ibverbs)' <<< "$output"
  done
}

# It starts once per rank: loading libraries would take longer than all that it does.
@test "the shim needs no shared library" {
  grep -q '^DDLRUN_LINKS_\(WITH_MUSL\|STATICALLY\):INTERNAL=1' "$DDLRUN_BUILD/CMakeCache.txt" || skip "neither musl-dev nor static libraries, or sanitizers"
  run ldd "$prefix/libexec/ddlrun/ddlrun-rank"
  echo "$output"
  [[ $output == *"not a dynamic executable"* || $output == *"statically linked"* ]]
}

@test "every program has its manual page and its completion" {
  [ -e "$DDLRUN_BUILD/manual/man1/ddlrun.1" ] || skip "a build with sanitizers, or a cross build without an emulator, makes none"
  cd "$prefix"
  diff <(ls bin) <(basename -s .1 share/man/man1/*)
  diff <(ls bin) <(ls share/bash-completion/completions)
}

@test "ddlrun runs from there by both names, with the shim and the site files beside it" {
  run -0 --separate-stderr env -i PATH="$prefix/bin:$PATH" bede-ddlrun -n 1 --site bede sh -c 'echo "$RANK/$WORLD_SIZE $NCCL_IB_HCA"'
  [ "$output" = "0/1 =mlx5_0:1,mlx5_3:1" ]
  [[ $stderr == *"+ $prefix/libexec/ddlrun/ddlrun-rank "* ]]
}

@test "it runs from wherever it is moved to" {
  cp -a "$prefix" moved
  run --separate-stderr moved/bin/ddlrun -n 1 --site bede sh -c 'echo "$RANK/$WORLD_SIZE"'
  [ "$output" = 0/1 ]
  [[ $stderr == *"+ $PWD/moved/libexec/ddlrun/ddlrun-rank "* ]]
}

@test "the programs find their libraries where they found them when they were built" {
  for program in "$prefix"/bin/* "$prefix"/libexec/ddlrun/* $(modules); do
    run ldd "$program"
    [[ $output != *"not found"* ]] || { echo "$program: $output"; return 1; }
  done
}

@test "an older C++ library in LD_LIBRARY_PATH ends no program of the launcher" {
  grep -q '^DDLRUN_LINKS_WITH_STATIC_CXX:INTERNAL=1' "$DDLRUN_BUILD/CMakeCache.txt" || skip "no static libraries, or sanitizers"
  mkdir old
  cc -shared -o old/libstdc++.so.6 -x c /dev/null
  export LD_LIBRARY_PATH=$PWD/old
  [[ $("$prefix/bin/ddltraind" --version 2>&1) != *"built with"* ]] # ends one that is not made for it
  [ "$("$prefix/bin/ddlrun" --version | sed -n 's/^ddlrun //p')" = "$version" ]
  "$prefix/bin/ddlrun" -n 1 --launcher=local true
  run -78 "$prefix/bin/ddlrun" -n 1 --launcher=local --site none true # an exception that is caught
  "$prefix/bin/ddl-rankfile" expand 'gpu[1-2]'
  run -0 "$prefix/bin/ddlctl" --version
  run ! "$prefix/bin/ddlctl" status "$PWD"
  [[ $output != *"symbol lookup error"* && $output != *"terminate called"* ]]
}

@test "no program needs anything of NVIDIA's, nor MPI, to start" {
  run ldd "$prefix"/bin/* "$prefix"/libexec/ddlrun/*
  [[ $output == *libstdc++* ]]
  run ! grep -E 'lib(cuda|cudnn|cublas|nccl|nvidia|mpi)' <<< "$output"
}

@test "MPI is found beside the program, and missed where it is not there" {
  has_mpi || skip "built without MPI"
  cp -a "$prefix" moved
  moved/bin/ddldata synth --classes 2 --images 8 --size 64-80 data > /dev/null
  # A world of two, of which MPI knows nothing: far enough to see that it was asked.
  train() {
    env RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 DDLRUN_LAUNCHER=mpirun OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 "$@" \
      moved/bin/ddltraind --data_dir=data --classes=2 --arch=resnet_tiny --image_size=32 --batch_size=4 --threads=1 --backend=reference \
      --mode=train --iter_unit=batch --num_iter=1
  }
  run -78 train
  [[ $output == *"the environment says rank 0 of 2, MPI says rank 0 of 1"* ]]
  rm moved/lib/ddlrun/ddltrain_mpi.so
  run -69 train
  [[ $output == *"there is no $PWD/moved/lib/ddlrun/ddltrain_mpi.so; "*"ddlrun --launcher=local"* ]]
}

@test "the back end for GPUs is found beside the program, and missed where it is not there" {
  has_cuda || skip "built without CUDA"
  # With what passes for a driver the module is loaded, whose CUDA then sees through it.
  mkdir driver
  cp "$DDLRUN_BUILD/tests/missing_library.so" driver/libcuda.so.1
  cp -a "$prefix" moved
  export LD_LIBRARY_PATH=$PWD/driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  LD_DEBUG=libs run moved/bin/ddltraind --version
  [[ $output == *"calling init: $PWD/moved/lib/ddlrun/ddltrain_cuda.so"* ]]
  [[ $output == *"module of cuda: $PWD/moved/lib/ddlrun/ddltrain_cuda.so"* ]]
  rm moved/lib/ddlrun/ddltrain_cuda.so
  run moved/bin/ddltraind --version
  [[ $output == *"cuda (the cuda back end is not installed: there is no $PWD/moved/lib/ddlrun/ddltrain_cuda.so"* ]]
  [[ $output == *"module of cuda: not installed: there is no $PWD/moved/lib/ddlrun/ddltrain_cuda.so"* ]]
}

@test "a package's staging directory (DESTDIR) does not get into the modulefiles" {
  DESTDIR="$PWD/stage" install_ddlrun /opt/ddlrun
  grep -q '^set prefix {/opt/ddlrun}$' "stage/opt/ddlrun/share/modulefiles/ddlrun/$version"
  grep -q '^local prefix = "/opt/ddlrun"$' "stage/opt/ddlrun/share/lmod-modulefiles/ddlrun/$version.lua"
}

@test "installations of one build at the same time do not meet" {
  local i pids=()
  for i in 1 2 3 4 5 6 7 8; do
    install_ddlrun "$PWD/at$i" &
    pids+=($!)
  done
  wait "${pids[@]}"
  for i in 1 2 3 4 5 6 7 8; do
    grep -q "^set prefix {$PWD/at$i}$" "at$i/share/modulefiles/ddlrun/$version"
    grep -q "^local prefix = \"$PWD/at$i\"$" "at$i/share/lmod-modulefiles/ddlrun/$version.lua"
  done
}

@test "everything that was installed is in CMake's list" {
  install_ddlrun "$PWD/listed"
  for path in share/modulefiles/ddlrun/$version share/lmod-modulefiles/ddlrun/$version.lua bin/ddlrun bin/bede-ddlrun; do
    grep -qxF "$PWD/listed/$path" "$DDLRUN_BUILD/install_manifest.txt" || { echo "$path"; return 1; }
  done
}

@test "an ordinary user installs into a directory of their own, which all may read" {
  [ "$(id -u)" -eq 0 ] || skip "needs root, to be somebody else"
  unshare -m true 2> /dev/null || skip "this machine allows no namespaces"
  local own user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
  "${user[@]}" test -r "$DDLRUN_BUILD/cmake_install.cmake" || skip "the build directory is not readable for others"
  own=$(mktemp -d /tmp/ddlrun-install.XXXXXX) # bats' own is root's alone
  touch "$own/manifest"                       # which CMake writes into the build directory
  chmod 755 "$own"
  chown -R 65534:65534 "$own"
  cd "$own"
  (umask 022 && unshare -m bash -c 'mount --bind manifest "$DDLRUN_BUILD/install_manifest.txt" && exec "$@"' _ \
    "${user[@]}" cmake --install "$DDLRUN_BUILD" --prefix "$own/ddlrun") > "$BATS_TEST_TMPDIR/log" 2>&1 || { cat "$BATS_TEST_TMPDIR/log"; return 1; }
  run find ddlrun ! -perm -a+r
  [ -z "$output" ]
  run --separate-stderr "${user[@]}" env HOME="$own" TMPDIR="$own" ddlrun/bin/ddlrun -n 1 sh -c 'echo "$RANK/$WORLD_SIZE"'
  [ "$output" = 0/1 ]
  rm -rf "$own"
}

# Every one but the shim, which is static and of another C library. What is read-only once it runs: .dynamic says BIND_NOW.
@test "programs are hardened" {
  grep -q '^DDLRUN_HARDENING:BOOL=ON' "$DDLRUN_BUILD/CMakeCache.txt" || skip "DDLRUN_HARDENING is off"
  grep -q '^DDLRUN_SANITIZE:STRING=$' "$DDLRUN_BUILD/CMakeCache.txt" || skip "a build with sanitizers"
  ! grep -q '^CMAKE_BUILD_TYPE:STRING=Debug$' "$DDLRUN_BUILD/CMakeCache.txt" || skip "a build without optimization"
  for program in "$prefix"/bin/* "$prefix"/libexec/ddlrun/* $(modules); do
    [ "${program##*/}" != ddlrun-rank ] || continue
    echo "$program"
    readelf -hW "$program" | grep -q 'Type: *DYN'
    readelf -lW "$program" | grep -q GNU_RELRO
    readelf -dW "$program" | grep -qE 'BIND_NOW|Flags:.* NOW'
    readelf --dyn-syms -W "$program" | grep -q '__stack_chk_fail'
    readelf --dyn-syms -W "$program" | grep -qE ' __[a-z]+_chk@'
  done
}

# An empty entry is the current directory, in which others may put libraries.
@test "programs of the build and of the installation take libraries from absolute directories" {
  for program in {"$DDLRUN_BUILD","$prefix"}/{bin,libexec/ddlrun,lib/ddlrun}/*; do
    [ -e "$program" ] || continue
    echo "$program"
    path=$(readelf -dW "$program" | sed -n 's/.*(\(RUNPATH\|RPATH\)).*\[\(.*\)\]/\2/p')
    [ -z "$path" ] || ! tr : '\n' <<< "$path" | grep -qv '^/'
  done
}
