# SPDX-License-Identifier: Apache-2.0
"""Makes the wheel of the launcher: the component `launcher` of the installation below what Python calls data, so that bin, libexec and
share lie below sys.prefix as they do below any other prefix.  pip calls build_wheel (pyproject.toml), tools/wheel make_wheel.  Standard
library only.
"""

import base64
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
NOT_IN_THE_WHEEL = ("WITH_TRAINER", "TESTS", "BENCH", "WITH_MPI", "WITH_PMIX", "WITH_UCX", "WITH_ONEDNN", "WITH_CUDA", "WITH_PNG")
# Newer clangs find what it has for them no constant expression.
AS_FMT_10_WANTS = "-DFMT_CONSTEVAL="
# A wheel has no symbolic links.  The name that ddlrun is called by decides what it is.
LINK = '#!/bin/bash\nexec -a "$0" "$(dirname "$(readlink -f "$0")")/{target}" "$@"\n'
METADATA = """\
Metadata-Version: 2.4
Name: ddlrun
Version: {version}
Summary: One command starts one rank of a program per GPU over all nodes of a Slurm job
Maintainer-email: {contact[maintainer]}
Project-URL: Homepage, {contact[home]}
Project-URL: Issues, {contact[bugs]}
License-Expression: {licences}
{files}
Classifier: Environment :: Console
Classifier: Operating System :: POSIX :: Linux
Classifier: Topic :: System :: Distributed Computing
Requires-Python: >=3.6
Provides-Extra: diagnose
Requires-Dist: py-spy ; extra == 'diagnose'
Description-Content-Type: text/markdown

{readme}"""


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


def build(target, zig, goal, is_cross):
    """(build directory, prefix of the libraries), with `goal` made."""
    directory = ROOT / f"build/wheel-{target.name}"
    tools, prefix = libraries.build_all(target, zig, is_cross, say)
    settings = directory / "CMakeCache.txt"
    if settings.exists() and str(tools) not in settings.read_text(encoding="utf-8"):
        shutil.rmtree(directory)  # of other libraries
    directory.mkdir(parents=True, exist_ok=True)
    log = directory / "log"
    log.unlink(missing_ok=True)
    # The tools are a line that names zig: ccache shall not go by their date.
    environment = {**os.environ, "PKG_CONFIG_LIBDIR": f"{prefix}/lib/pkgconfig", "SOURCE_DATE_EPOCH": str(epoch()),
                   "CCACHE_COMPILERCHECK": "content"}
    say(f"ddlrun for {target.name} (log: {log})")
    libraries.run(["cmake", "-G", "Ninja", "-S", ROOT, "-B", directory, *libraries.cmake_options(target, tools, is_cross),
                   f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_CXX_FLAGS=-isystem {prefix}/include {AS_FMT_10_WANTS}", "-DCMAKE_EXE_LINKER_FLAGS=-s",
                   "-DCMAKE_INSTALL_LIBEXECDIR=libexec", "-DCMAKE_INSTALL_RPATH_USE_LINK_PATH=OFF", "-DDDLRUN_RELATIVE_MODULEFILES=ON",
                   f"-DDDLRUN_MUSL_TARGET={target.musl}", *(f"-DDDLRUN_{name}=OFF" for name in NOT_IN_THE_WHEEL)], log, env=environment)
    libraries.run(["cmake", "--build", directory, "--target", *goal], log, env=environment)
    return directory, prefix


def install(target, zig):
    """(directory with bin, libexec and share; directory of licences)"""
    host = libraries.TARGETS.get(platform.machine())
    is_cross = target != host
    programs = ["ddlrun", "ddlctl", "ddl-rankfile"]
    directory, prefix = build(target, zig, programs if is_cross else [*programs, "manual_pages"], is_cross)
    staged = directory / "staged"
    shutil.rmtree(staged, ignore_errors=True)
    libraries.run(["cmake", "--install", directory, "--prefix", staged, "--component", "launcher"], directory / "log")
    if is_cross and host is None:
        raise libraries.Failed(f"nothing is compiled for {platform.machine()}, which could write the manual pages: use another machine")
    if is_cross:  # the pages are the same everywhere, and who writes them runs here alone
        manual = build(host, zig, ["manual_pages"], False)[0] / "manual"
        for source, directory in (("man1/{}.1", "share/man/man1"), ("completions/{}", "share/bash-completion/completions")):
            (staged / directory).mkdir(parents=True, exist_ok=True)
            for program in (staged / "bin").iterdir():
                shutil.copy(manual / source.format(program.name), staged / directory)
    return staged, prefix / "licences"


def content_of(path):
    """(bytes, whether it is a program)"""
    if path.is_symlink():
        return LINK.format(target=os.readlink(path)).encode(), True
    return path.read_bytes(), bool(path.stat().st_mode & stat.S_IXUSR)


def sbom(licences, zig_version):
    """The SPDX document of what the programs contain, all of it by the texts of its licences."""
    contained = [spdx.Library(library.name, library.spdx, version=re.search(r"_([0-9]+(\.[0-9]+)*)", library.path)[1]) for library in libraries.LIBRARIES]
    contained += [spdx.Library(name, licence, comment=f"of zig {zig_version}") for name, licence, _ in libraries.OF_ZIG]
    for library in contained:
        library.is_contained = True
        library.texts = ((licences / library.name).read_text(encoding="utf-8", errors="replace"),)
    return json.dumps(spdx.document(version(), epoch(), contact()["home"], contained), indent=1).encode()


def wheel_files(staged, licences, tags, zig_version):
    """{name in the wheel: (bytes, whether it is a program)} but for RECORD."""
    stem = f"ddlrun-{version()}"
    files = {f"{stem}.data/data/{path.relative_to(staged)}": content_of(path)
             for path in sorted(staged.rglob("*")) if path.is_symlink() or path.is_file()}
    texts = {name: ROOT / name for name in ("LICENSE", "NOTICE")}
    texts.update({f"{path.name}/LICENCE": path for path in sorted(licences.iterdir())})
    files.update({f"{stem}.dist-info/licenses/{name}": (path.read_bytes(), False) for name, path in texts.items()})
    names = {library.spdx for library in libraries.LIBRARIES} | {licence for _, licence, _ in libraries.OF_ZIG}
    metadata = METADATA.format(version=version(), contact=contact(), licences=" AND ".join(["Apache-2.0", *sorted(names)]),
                               files="\n".join(f"License-File: {name}" for name in texts),
                               readme=(ROOT / "README.md").read_text(encoding="utf-8"))
    wheel = "Wheel-Version: 1.0\nGenerator: ddlrun\nRoot-Is-Purelib: false\n" + "".join(f"Tag: py3-none-{tag}\n" for tag in tags)
    files[f"{stem}.dist-info/sboms/ddlrun.spdx.json"] = sbom(licences, zig_version), False
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


def make_wheel(architecture, directory):
    """The path of the wheel, in `directory`.  `architecture` is one of libraries.TARGETS.  Throws libraries.Failed."""
    target = libraries.TARGETS[architecture]
    for program in ("cmake", "ninja", "make"):
        if shutil.which(program) is None:
            raise libraries.Failed(f"there is no {program}: tools/bootstrap")
    zig = libraries.find_zig(ROOT)
    zig_version = subprocess.run([zig, "version"], capture_output=True, text=True, check=True).stdout.strip()
    staged, licences = install(target, zig)
    tags = [f"manylinux_{target.glibc.replace('.', '_')}_{target.name}"]
    if target.glibc == "2.17":
        tags.insert(0, f"manylinux2014_{target.name}")  # for pip before 20.3
    path = pathlib.Path(directory) / f"ddlrun-{version()}-py3-none-{'.'.join(tags)}.whl"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_wheel(path, wheel_files(staged, licences, tags, zig_version), f"ddlrun-{version()}.dist-info/RECORD")
    return path


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):  # pylint: disable=unused-argument
    """For pip wheel . (PEP 517), of this machine's architecture."""
    if platform.machine() not in libraries.TARGETS:
        sys.exit(f"ddlrun: no wheel is made for {platform.machine()}: {', '.join(libraries.TARGETS)}")
    try:
        return make_wheel(platform.machine(), wheel_directory).name
    except libraries.Failed as failed:
        sys.exit(f"ddlrun: {failed}")


def build_sdist(sdist_directory, config_settings=None):  # pylint: disable=unused-argument
    sys.exit("ddlrun: tools/release makes the tarball of the sources")
