#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What is in the wheel of the trainer's module for CUDA in build/wheels, and that ddltraind finds it and NVIDIA's libraries wherever pip
# puts them. In the place of PyPI's, which are two gigabytes, are links to those that it was compiled with.

bats_require_minimum_version 1.5.0
load wheels

setup_file() {
  unpack_wheels ddlrun_train_cuda13
}

setup() {
  cd "$BATS_FILE_TMPDIR" || exit 1
  wheel=$(echo *.whl)
  module=$PWD/$wheel/ddlrun_train_cuda13/ddltrain_cuda.so
  extra="pip install 'ddlrun[cuda13]'"
}

setting() { # NAME: of the build
  sed -n "s/^$1:[A-Z]*=//p" "$here/build/wheel-$(architecture "$wheel")-trainer/CMakeCache.txt"
}

# Installs the three wheels without what they require, by pip with these options.
install_by_pip() { # PYTHON OPTION ...
  "$1" -m pip install -q --no-index --no-deps "${@:2}" "$here"/build/wheels/ddlrun{,_train,_train_cuda13}-"$version"-*"$(architecture "$wheel").whl"
}

add_libraries() { # PACKAGES: their directory
  local from
  mkdir -p "$1"/nvidia/{cu13,cudnn,nccl}/lib
  from=$(dirname "$(setting CUBLASLT_LIBRARY)")
  ln -sf "$from"/lib{cudart,cublas,cublasLt,nvrtc}.so.* "$1/nvidia/cu13/lib"
  from=$(dirname "$(setting CUDNN_LIBRARY)")
  ln -sf "$from"/libcudnn*.so.* "$1/nvidia/cudnn/lib"
  from=$(dirname "$(setting NCCL_LIBRARY)")
  ln -sf "$from"/libnccl.so.* "$1/nvidia/nccl/lib"
}

# With what passes for a driver the module is loaded, whose CUDA then sees through it.
make_driver() {
  mkdir -p "$BATS_TEST_TMPDIR/driver"
  cc -shared -fPIC -o "$BATS_TEST_TMPDIR/driver/libcuda.so.1" -x c /dev/null
}

train() { # OPTION ...: two steps, by the environment venv
  [ -e data ] || venv/bin/ddldata synth --classes 10 --images 40 --validation_images 8 --size 64-80 data > /dev/null
  venv/bin/ddltraind --arch=resnet_tiny --data_dir=data --classes=10 --image_size=32 --batch_size=8 --iter_unit=batch --lr_warmup_epochs=0 \
    --threads=1 --num_iter=2 --mode=train_and_evaluate --results_dir="$BATS_TEST_TMPDIR/results" "$@"
}

@test "it is made for every Python, and for the glibc of RHEL 8" {
  [ "$wheel" = "ddlrun_train_cuda13-$version-py3-none-manylinux_2_28_$(architecture "$wheel").whl" ]
  expect_processor_and_glibc "$(architecture "$wheel")" 2.28 "$module"
}

@test "it holds the module alone, and no path of where it was made" {
  [ "$(cd "$wheel" && find . -type f -not -path "./$info/*")" = ./ddlrun_train_cuda13/ddltrain_cuda.so ]
  expect_no_path_of_the_build
}

# pip on Fedora would put what is not purelib into lib64, and NVIDIA's packages into lib.
@test "it lies beside NVIDIA's packages, and takes their libraries before those of LD_LIBRARY_PATH" {
  grep -qx 'Root-Is-Purelib: true' "$wheel/$info/WHEEL"
  run -0 readelf -dW "$module"
  [ "$(sed -n 's/.*(RPATH).*\[\(.*\)\]/\1/p' <<< "$output")" = '$ORIGIN/../nvidia/cu13/lib:$ORIGIN/../nvidia/cudnn/lib' ]
  [[ $output != *RUNPATH* ]]
  [ "$(needed_beside_libc "$module" | sort | xargs)" = "libcublasLt.so.13 libcudart.so.13 libcudnn.so.9" ]
}

@test "it asks for nothing of GCC's C++ library, by which its kernels were compiled" {
  run -0 readelf --dyn-syms -W "$module"
  [ "$(awk '$7 != "UND" && $5 == "GLOBAL" {print $8}' <<< "$output" | sort | xargs)" = "ddltrain_cuda_module ddltrain_share_exceptions" ]
  [[ $output != *UND*_ZSt* && $output != *UND*_ZNSt* && $output != *UND*__cxa_throw* ]]
}

@test "it has code for every GPU that ddltraind names" {
  mapfile -t kernels < <(find "$here/trainer/backend/cuda" -name '*.cu')
  run -0 "$here/build/wheel-$(architecture "$wheel")-trainer/bin/ddltraind" --version
  # compute capability 8.0, 9.0, later ones by PTX of 9.0
  [[ $output =~ "compute capability "([0-9., ]+)", later ones by PTX of "([0-9.]+) ]]
  read -ra architectures <<< "${BASH_REMATCH[1]//[.,]/} "
  run -0 python3 "$here/tests/trainer/backend/cuda/gpu_code_test.py" "$module" ${#kernels[@]} "${architectures[@]/%/-real}" \
    "${BASH_REMATCH[2]/./}-virtual"
}

@test "its metadata says where bugs are reported, and which versions of NVIDIA's packages it takes" {
  expect_contacts "$wheel"
  version_of() { # FILE MACRO ...: of a header
    sed -nE "s/^ *# *define +$(printf '%s' "${@:2}") +([0-9]+)$/\1/p" "$1"
  }
  cudnn=$(setting CUDNN_INCLUDE_DIR)/cudnn_version.h cuda=$(setting CUBLASLT_INCLUDE_DIR) nccl=$(setting NCCL_INCLUDE_DIR)/nccl.h
  cudart=$(version_of "$cuda/cuda_runtime_api.h" CUDART_VERSION)
  [ "$(grep '^Requires-Dist' "$wheel/$info/METADATA")" = "Requires-Dist: ddlrun-train == $version
Requires-Dist: nvidia-cuda-runtime >= $((cudart / 1000)).$((cudart % 1000 / 10)), < 14
Requires-Dist: nvidia-cublas >= $(version_of "$cuda/cublas_api.h" CUBLAS_VER_MAJOR).$(version_of "$cuda/cublas_api.h" CUBLAS_VER_MINOR), < 14
Requires-Dist: nvidia-cudnn-cu13 >= $(version_of "$cudnn" CUDNN_MAJOR).$(version_of "$cudnn" CUDNN_MINOR), < 10
Requires-Dist: nvidia-nccl-cu13 >= $(version_of "$nccl" NCCL_MAJOR).$(version_of "$nccl" NCCL_MINOR), < 3" ]
}

@test "RECORD has the digest of every file" {
  expect_right_digests "$wheel"
}

@test "the licence and version of everything that is linked is in it, and in its SPDX document" {
  expect_licences "$wheel" glibc-startup isa-l libc++-libunwind zig-compiler-rt
}

@test "ddltraind finds it, and NCCL, wherever pip puts them" {
  python3 -m venv "$BATS_TEST_TMPDIR/venv"
  install_by_pip "$BATS_TEST_TMPDIR/venv/bin/python3"
  export PYTHONUSERBASE=$BATS_TEST_TMPDIR/user PIP_BREAK_SYSTEM_PACKAGES=1
  install_by_pip python3 --user
  install_by_pip python3 --target "$BATS_TEST_TMPDIR/target"
  for prefix in venv user target; do
    packages=$(dirname "$(find "$BATS_TEST_TMPDIR/$prefix/" -name ddlrun_train_cuda13 -not -path '*/lib64/*')")
    add_libraries "$packages"
    run -0 "$BATS_TEST_TMPDIR/$prefix/bin/ddltraind" --version
    echo "$prefix: $output"
    [ "${lines[2]}" = "module of cuda: $packages/ddlrun_train_cuda13/ddltrain_cuda.so" ]
    [[ ${lines[3]} =~ ^NCCL:\ 2\.[0-9.]+$ ]]
    [[ $output == *"(back end cuda, for compute capability "* ]]
    # Without the wheel it says how to get it.
    rm -r "$packages/ddlrun_train_cuda13"
    run -0 "$BATS_TEST_TMPDIR/$prefix/bin/ddltraind" --version
    [ "${lines[2]}" = "module of cuda: not installed: $extra brings it" ]
  done
}

@test "the module is loaded where there is a driver, with the libraries beside it, and its errors are the program's" {
  python3 -m venv venv
  install_by_pip venv/bin/python3
  packages=$(echo "$PWD"/venv/lib/python3*/site-packages)
  add_libraries "$packages"
  make_driver
  # What LD_LIBRARY_PATH has by the same names is of no use.
  mkdir -p "$BATS_TEST_TMPDIR/others"
  for library in libcudart.so.13 libcublasLt.so.13 libcudnn.so.9 libnccl.so.2; do
    cp "$BATS_TEST_TMPDIR/driver/libcuda.so.1" "$BATS_TEST_TMPDIR/others/$library"
  done
  export LD_LIBRARY_PATH=$BATS_TEST_TMPDIR/driver:$BATS_TEST_TMPDIR/others
  LD_DEBUG=libs run -0 venv/bin/ddltraind --version
  echo "$output" | tail -n 30
  for library in cu13/lib/libcudart.so.13 cu13/lib/libcublasLt.so.13 cudnn/lib/libcudnn.so.9; do
    [[ $output == *"calling init: $packages/ddlrun_train_cuda13/../nvidia/$library"* ]]
  done
  [[ $output == *"calling init: $packages/nvidia/nccl/lib/libnccl.so.2"* && $output != *"calling init: $BATS_TEST_TMPDIR/others"* ]]
  [[ $output == *"back ends: cuda (no GPU: there is no NVIDIA driver) cpu"* ]]
  run -69 train --backend=cuda
  [ "$output" = "ddltraind: no GPU: there is no NVIDIA driver; --backend=cpu computes without one" ]
}

@test "on a machine without a driver it computes on CPUs, and says why" {
  [ -z "$(ldconfig -p | grep -F libcuda.so.1)" ] || skip "there is a driver"
  python3 -m venv venv
  install_by_pip venv/bin/python3
  run -0 train
  echo "$output"
  [[ $output == *"warning: computing on the CPU: no GPU: there is no NVIDIA driver (libcuda.so.1: "* ]]
}

# Each has zig's C++ library of its own.
@test "a program catches what a module throws, and counts it while it is on its way" {
  cat > "$BATS_TEST_TMPDIR/module.cc" << 'EOF'
#include <stdexcept>
#include <string>
struct Own : std::runtime_error { using std::runtime_error::runtime_error; };
extern "C" void Throw(int which) {
  if (which == 0) throw Own("own");
  if (which == 1) throw std::bad_alloc();
  if (which == 2) throw std::string("text");
  throw 3;
}
EOF
  cat > "$BATS_TEST_TMPDIR/program.cc" << 'EOF'
#include <dlfcn.h>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
extern "C" void* __cxa_get_globals();
struct Own : std::runtime_error { using std::runtime_error::runtime_error; };
struct Counter { ~Counter() { std::printf("%d ", std::uncaught_exceptions()); } };
int main(int, char** arguments) {
  void* module = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  reinterpret_cast<void (*)(void* (*)())>(dlsym(module, "ddltrain_share_exceptions"))(__cxa_get_globals);
  const auto raise = reinterpret_cast<void (*)(int)>(dlsym(module, "Throw"));
  for (int which = 0; which < 4; ++which) {
    try {
      const Counter counter;
      raise(which);
    } catch (const Own& own) {
      std::printf("Own %s\n", own.what());
    } catch (const std::exception& other) {
      std::printf("%s\n", other.what());
    } catch (const std::string& text) {
      std::printf("%s\n", text.c_str());
    } catch (int number) {
      std::printf("%d\n", number);
    }
  }
  std::printf("%d\n", std::uncaught_exceptions());
}
EOF
  printf '{ global: Throw; ddltrain_*; local: *; };\n' > "$BATS_TEST_TMPDIR/map"
  compiler=$(setting CMAKE_CXX_COMPILER) exceptions=$(setting CMAKE_CXX_STANDARD_LIBRARIES)
  cd "$BATS_TEST_TMPDIR"
  "$compiler" -O2 -fPIC -shared module.cc "$exceptions" -Wl,--version-script=map -o module.so
  "$compiler" -O2 program.cc "$exceptions" -o program
  run -0 ./program ./module.so
  echo "$output"
  [ "$output" = $'1 Own own\n1 std::bad_alloc\n1 text\n1 3\n0' ]
}
