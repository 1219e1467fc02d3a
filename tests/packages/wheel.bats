#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What is in the wheels of build/wheels, which tools/check wheel has made before; tests/packages/wheel-in-clean-root installs that of this
# machine.

bats_require_minimum_version 1.5.0
load ../module_systems
load wheels

setup_file() {
  unpack_wheels ddlrun
}

setup() {
  cd "$BATS_FILE_TMPDIR" || exit 1
}

@test "it is made for every Python, and for the glibc that its name says" {
  for wheel in *.whl; do
    case $(architecture "$wheel") in
      ppc64le) glibc=2.19 ;; # zig has no earlier one
      *) glibc=2.17 ;;
    esac
    tag=manylinux_${glibc/./_}_$(architecture "$wheel")
    [ $glibc != 2.17 ] || tag=manylinux2014_$(architecture "$wheel").$tag
    [ "$wheel" = "ddlrun-$version-py3-none-$tag.whl" ]
    expect_processor_and_glibc "$(architecture "$wheel")" $glibc "$wheel/$data"/bin/ddl* "$wheel/$data"/libexec/ddlrun/*
  done
}

@test "programs need nothing but the C library, the shim not even that" {
  for program in *.whl/"$data"/bin/ddl* *.whl/"$data"/libexec/ddlrun/*; do
    run -0 readelf -dW "$program"
    [ "${program##*/}" != ddlrun-rank ] || [[ $output != *"(NEEDED)"* ]]
    [ -z "$(needed_beside_libc "$program")" ] || { echo "$program needs $(needed_beside_libc "$program")"; return 1; }
    [[ $output != *RUNPATH* && $output != *RPATH* ]]
  done
}

@test "it holds what the component launcher installs, and no path of where it was made" {
  for wheel in *.whl; do
    [ "$(cd "$wheel/$data" && find . -type f | sed "s/$version/VERSION/" | LC_ALL=C sort)" = "$(LC_ALL=C sort << 'EOF'
./bin/bede-ddlrun
./bin/bede-mpirun
./bin/ddl-rankfile
./bin/ddlctl
./bin/ddlrun
./libexec/ddlrun/ddlrun-node-check
./libexec/ddlrun/ddlrun-rank
./libexec/ddlrun/ddlrun-rank-check
./libexec/ddlrun/ddlrun-rank-energy
./share/bash-completion/completions/bede-ddlrun
./share/bash-completion/completions/bede-mpirun
./share/bash-completion/completions/ddl-rankfile
./share/bash-completion/completions/ddlctl
./share/bash-completion/completions/ddlrun
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
./share/lmod-modulefiles/ddlrun/VERSION.lua
./share/man/man1/bede-ddlrun.1
./share/man/man1/bede-mpirun.1
./share/man/man1/ddl-rankfile.1
./share/man/man1/ddlctl.1
./share/man/man1/ddlrun.1
./share/modulefiles/ddlrun/VERSION
EOF
)" ]
  done
  expect_no_path_of_the_build
}

@test "modulefiles find the programs wherever they are put" {
  for wheel in *"$(uname -m).whl"; do
    cp -a "$wheel/$data" "$BATS_TEST_TMPDIR/place"
    for system in environment-modules:modulefiles lmod:modulefiles lmod:lmod-modulefiles; do
      module_start "${system%:*}" > start
      [ -s start ] || skip "${system%:*} is not here: tools/bootstrap check gets it"
      run -0 env -i PATH=/usr/bin:/bin HOME="$PWD" \
        bash -c ". ./start; module use $BATS_TEST_TMPDIR/place/share/${system#*:}; module load ddlrun && command -v ddlrun"
      echo "$system: $output"
      [ "${lines[-1]}" = "$BATS_TEST_TMPDIR/place/bin/ddlrun" ]
    done
  done
}

@test "its metadata says where bugs are reported, and what its extras are" {
  for wheel in *.whl; do
    expect_contacts "$wheel"
    grep -qxF "Requires-Dist: ddlrun-train == $version ; extra == 'train'" "$wheel/$info/METADATA"
    grep -qxF "Requires-Dist: ddlrun-train-cuda13 == $version ; extra == 'cuda13'" "$wheel/$info/METADATA"
    grep -qxF "Requires-Dist: py-spy ; extra == 'diagnose'" "$wheel/$info/METADATA"
    [ "$(grep -c '^Requires-Dist' "$wheel/$info/METADATA")" -eq "$(grep -c '^Provides-Extra' "$wheel/$info/METADATA")" ]
  done
}

@test "RECORD has the digest of every file" {
  for wheel in *.whl; do expect_right_digests "$wheel"; done
}

@test "the licence and version of everything that is linked is in it, and in its SPDX document" {
  for wheel in *.whl; do
    expect_licences "$wheel" CLI11 fmt glibc-startup hwloc isa-l libc++-libunwind libpciaccess musl nlohmann-json spdlog yaml-cpp zig-compiler-rt
    [ "$(jq -r '.packages[] | select(.name == "hwloc").versionInfo' "$wheel/$info/sboms/ddlrun.spdx.json")" = \
      "$(sed -n 's#.*hwloc_\([0-9.]*\)[.]orig.*#\1#p' "$here/packaging/wheel/libraries.py")" ]
  done
}

# ddlrun leaves hwloc's own component for PCI out (launcher/topology/hwloc_topology.cc); what is left has to see the devices.
@test "hwloc sees the PCI devices that Linux sees" {
  cat > devices.c << 'EOF'
#include <hwloc.h>
#include <stdio.h>
int main(void) {
  hwloc_topology_t topology;
  int count = 0;
  hwloc_topology_init(&topology);
  hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_ALL);
  hwloc_topology_load(topology);
  for (hwloc_obj_t device = NULL; (device = hwloc_get_next_pcidev(topology, device)) != NULL;) ++count;
  printf("%d\n", count);
}
EOF
  [ -n "$(ls /sys/bus/pci/devices)" ] || skip "no PCI device here"
  export HWLOC_COMPONENTS=-pci
  for wheel in *.whl; do
    libraries=$(sed -n 's/^CMAKE_PREFIX_PATH:UNINITIALIZED=//p' "$here/build/wheel-$(architecture "$wheel")/CMakeCache.txt")
    "$libraries/tools/clang" -O2 -I"$libraries/include" devices.c -L"$libraries/lib" -lhwloc -lpciaccess -o devices
    on "$(architecture "$wheel")" "$PWD/devices"
    echo "$wheel: $output"
    [ $status -eq 0 ]
    # A bridge to other buses is no device to hwloc.
    [ "${lines[-1]}" -eq "$(cat /sys/bus/pci/devices/*/class | grep -cv '^0x0604')" ]
  done
}

# tests/packages/wheel-in-clean-root runs those of this machine.
@test "programs of another processor start, and start ranks" {
  others=(*.whl)
  for i in "${!others[@]}"; do [ "$(architecture "${others[i]}")" != "$(uname -m)" ] || unset "others[i]"; done
  [ ${#others[@]} -gt 0 ] || skip "no wheel of another processor: tools/wheel --arch aarch64"
  for wheel in "${others[@]}"; do
    prefix=$PWD/$wheel/$data
    # shellcheck disable=SC2016 # expands inside
    on "$(architecture "$wheel")" bash -ec '
      for program in ddlrun bede-mpirun ddlctl; do "$0/$program" --version; done
      "$0/ddl-rankfile" expand "gpu[1-2]"
      "$0/ddlrun" --site bede --show-config
      "$0/ddlrun" -n 2 --launcher=local --oversubscribe --dry-run python3 train.py
      "$0/ddlrun" -n 2 --launcher=local --oversubscribe "$0/ddl-rankfile" expand "of-a-rank"
      "$0/ddlrun" -n 1 --launcher=local --check=full "$0/ddl-rankfile" expand "after-the-check"' "$prefix/bin"
    echo "$output"
    [ $status -eq 0 ]
    for text in "ddlrun $version" "bede-mpirun $version" gpu2 "2 ranks on 1 node" "$prefix/share/ddlrun/sites/bede.yaml" after-the-check; do
      [[ $output == *"$text"* ]] || { echo "missing: $text"; return 1; }
    done
    [ "$(grep -c '^of-a-rank$' <<< "$output")" -eq 2 ]
  done
}
