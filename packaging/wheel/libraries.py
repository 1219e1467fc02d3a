# SPDX-License-Identifier: Apache-2.0
"""The libraries that the launcher links, compiled by zig as archives for one architecture: from Debian's own copies of their
sources, by checksum.  What is built is kept in ${XDG_CACHE_HOME:-~/.cache}/ddlrun/wheel.
"""

import contextlib
import dataclasses
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import tarfile
import textwrap
import urllib.parse
import urllib.request


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
    """`how` is configure, cmake or crc (those sources of ISA-L: its assembler would need nasm)."""

    name: str
    path: str  # in a mirror of Debian, below pool/main
    sha256: str
    spdx: str
    licence: str  # its file in the sources
    how: str
    options: tuple = ()


IEEE128 = pathlib.Path(__file__).with_name("ieee128.c")
MIRROR = "https://deb.debian.org/debian"
LIBRARIES = (
    # Without it hwloc sees no PCI device, and so no GPU.
    Library("libpciaccess", "libp/libpciaccess/libpciaccess_0.17.orig.tar.gz",
            "bf6985a77d2ecb00e2c79da3edfb26b909178ffca3f2e9d14ed0620259ab733b", "MIT", "COPYING", "configure"),
    Library("hwloc", "h/hwloc/hwloc_2.9.0.orig.tar.bz2",
            "b3fb1a43a14d8fbcd8e976de5ede2ea7ce1d768ed173adb33c7ceaaf098dc970", "BSD-3-Clause", "COPYING", "configure",
            ("--localstatedir=/var", "--enable-pci", "--disable-libxml2", "--disable-opencl", "--disable-cuda", "--disable-nvml", "--disable-rsmi",
             "--disable-levelzero", "--disable-gl", "--disable-libudev", "--disable-cairo")),
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
            ("crc_base", "crc64_base", "crc_base_aliases")),
    Library("CLI11", "c/cli11/cli11_2.4.1+ds.orig.tar.xz",
            "0b8fbf2398875f15f30a675c7f412123a2aaa38df2863e991de72004fd5f1292", "BSD-3-Clause", "LICENSE", "cmake",
            ("-DCLI11_BUILD_TESTS=OFF", "-DCLI11_BUILD_EXAMPLES=OFF", "-DCLI11_BUILD_DOCS=OFF")),
    Library("nlohmann-json", "n/nlohmann-json3/nlohmann-json3_3.11.3.orig.tar.gz",
            "0d8ef5af7f9794e3263480193c491549b2ba6cc74bb018906202ada498a79406", "MIT", "LICENSE.MIT", "cmake", ("-DJSON_BuildTests=OFF",)),
)
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


def make_tools(zig, target, directory):
    """zig's compilers and archivers as programs of one word, by the names that CMake, autotools and ccache know."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, words in (("clang", " ".join(["cc -target", target.gnu, *target.flags[:1]])),
                        ("clang++", " ".join(["c++ -target", target.gnu, *target.flags[1:]])), ("ar", "ar"), ("ranlib", "ranlib")):
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


def unpack(library, directory):
    """The one directory of the tarball."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    with tarfile.open(fetch(library)) as archive:
        archive.extractall(directory)
    (sources,) = directory.iterdir()
    return sources


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
    version = library.path.rsplit("_", 1)[1].split(".orig")[0].split("+")[0]
    if library.how == "configure":
        compiler = [f"{name}={tools}/{tool}" for name, tool in (("CC", "clang"), ("CXX", "clang++"), ("AR", "ar"), ("RANLIB", "ranlib"))]
        host = [f"--host={target.zig}-linux-gnu"] if is_cross else []
        run(["./configure", f"--prefix={prefix}", "--enable-static", "--disable-shared", "--with-pic", "CFLAGS=-O2 -fPIC", *host, *compiler,
             *library.options], log, cwd=sources, env=environment)
        run(["make", "install"], log, cwd=sources, env=environment)
    elif library.how == "cmake":
        run(["cmake", "-G", "Ninja", "-S", sources, "-B", sources / "b", *cmake_options(target, tools, is_cross), f"-DCMAKE_PREFIX_PATH={prefix}",
             f"-DCMAKE_INSTALL_PREFIX={prefix}", "-DCMAKE_INSTALL_LIBDIR=lib", "-DBUILD_SHARED_LIBS=OFF",
             "-DCMAKE_POSITION_INDEPENDENT_CODE=ON", *library.options], log, env=environment)
        run(["cmake", "--build", sources / "b", "--target", "install"], log, env=environment)
    else:
        for name in library.options:
            run([tools / "clang", "-O2", "-fPIC", "-Iinclude", "-c", f"crc/{name}.c", "-o", f"{name}.o"], log, cwd=sources)
        run([tools / "ar", "cr", prefix / "lib/libisal.a", *(f"{name}.o" for name in library.options)], log, cwd=sources)
        shutil.copytree(sources / "include", prefix / "include/isa-l", dirs_exist_ok=True)
        pkg_config(prefix, "libisal", version, "-lisal")
    if library.name == "hwloc":  # its own names libpciaccess only to those who ask for static linking
        pkg_config(prefix, "hwloc", version, "-lhwloc -lpciaccess")
    (prefix / "licences").mkdir(exist_ok=True)
    shutil.copy(sources / library.licence, prefix / "licences" / library.name)
    shutil.rmtree(work / library.name)


def build_all(target, zig, is_cross, say):
    """(directory of the tools, prefix of the libraries): built where they are not there yet.  Another build of the same user waits."""
    own = target.flags and (target.flags, IEEE128.read_text(encoding="utf-8"))
    key = hashlib.sha256(repr((target, target.gnu, own, LIBRARIES, zig)).encode()).hexdigest()[:12]
    prefix = cache() / f"{target.name}-{key}"
    prefix.mkdir(parents=True, exist_ok=True)
    with open(prefix / "lock", "w", encoding="utf-8") as lock:
        with contextlib.suppress(OSError):  # some file systems have no locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        return build_missing(target, zig, prefix, is_cross, say)


def build_missing(target, zig, prefix, is_cross, say):
    tools = prefix / "tools"
    make_tools(zig, target, tools)
    if (prefix / "complete").exists():
        return tools, prefix
    (prefix / "lib").mkdir(exist_ok=True)
    if target.flags:
        made = prefix / "lib/ieee128.o"
        run([tools / "clang", "-O2", "-fPIC", "-mfloat128", "-c", IEEE128, "-o", made], prefix / "ieee128.log")
        run([tools / "ar", "cr", made.with_name("libieee128.a"), made], prefix / "ieee128.log")
    for library in LIBRARIES:
        say(f"{library.name} for {target.name}")
        build(library, target, tools, prefix, prefix / "work", is_cross)
    for name, _, file in OF_ZIG:
        shutil.copy(zig.parent / "lib" / file, prefix / "licences" / name)
    shutil.rmtree(prefix / "work")
    (prefix / "complete").touch()
    return tools, prefix
