#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loads a recipe for Spack with a stand-in for Spack, whose names it has to import, and holds it against CMake's options.

usage: spack_recipe.py package.py CMakeCache.txt      the cache of a build that was configured

The stand-in knows what Spack's package API 2 has in the modules named below, as far as recipes need it; another name fails as it does there.
"""

import importlib.util
import pathlib
import re
import sys
import types

recorded = {}  # directive: its calls


def directive(name: str):
    def record(*arguments, **options):
        recorded.setdefault(name, []).append((arguments, options))
    return record


class CMakePackage:
    """With a spec that has each variant at its default, but those of `chosen`."""

    def __init__(self, **chosen):
        self.values = {arguments[0]: options["default"] for arguments, options in recorded["variant"]} | chosen
        self.spec = types.SimpleNamespace(
            satisfies=lambda text: bool(self.values[text[1:]]) == (text[0] == "+"),
            variants={name: types.SimpleNamespace(value=value) for name, value in self.values.items()})

    def define(self, name: str, value) -> str:
        if isinstance(value, bool):
            return f"-D{name}:BOOL={'ON' if value else 'OFF'}"
        return f"-D{name}:STRING={value if isinstance(value, str) else ';'.join(value)}"

    def define_from_variant(self, name: str, variant: str) -> str:
        return self.define(name, self.values[variant])


def module(name: str, **content) -> None:
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(content)


def options_of(package: CMakePackage) -> dict[str, str]:
    return dict(re.fullmatch(r"-D(\w+):\w+=(.*)", argument).groups() for argument in package.cmake_args())


def main(recipe: str, cache: str) -> None:
    for name in ("spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems", "spack"):
        module(name)
    module("spack_repo.builtin.build_systems.cmake", CMakePackage=CMakePackage, generator=directive("generator"))
    module("spack_repo.builtin.build_systems.cuda", CudaPackage=type("CudaPackage", (), {}))
    names = ("conflicts", "depends_on", "extends", "license", "maintainers", "patch", "provides", "requires", "resource", "variant", "version")
    module("spack.package", **{name: directive(name) for name in names})
    loaded = importlib.util.spec_from_file_location("package", recipe)
    package = importlib.util.module_from_spec(loaded)
    loaded.loader.exec_module(package)
    # CudaPackage brings these.
    recorded["variant"] += [(("cuda",), {"default": False}), (("cuda_arch",), {"default": "none"})]

    usual = options_of(package.Ddlrun())
    known = set(re.findall(r"^(DDLRUN_\w+):BOOL=", pathlib.Path(cache).read_text(encoding="utf-8"), re.MULTILINE))
    assert set(usual) <= known, f"CMake has no {set(usual) - known}"
    variants = {arguments[0] for arguments, _ in recorded["variant"]} - {"cuda_arch"}
    for variant in variants:
        option = f"DDLRUN_WITH_{variant.upper()}"
        for is_on in (False, True):
            chosen = options_of(package.Ddlrun(**{variant: is_on, "cuda_arch": ("70", "80")}))
            assert chosen[option] == ("ON" if is_on else "OFF"), f"{option} is {chosen[option]} with {variant}={is_on}"
            assert chosen.get("CMAKE_CUDA_ARCHITECTURES") == ("70;80" if variant == "cuda" and is_on else None), chosen
    conditions = [options.get("when", "") for calls in recorded.values() for _, options in calls]
    unknown = {name for condition in conditions for name in re.findall(r"[+~](\w+)", condition)} - variants
    assert not unknown, f"no variant is called {unknown}"
    (_, release), = recorded["version"]
    assert re.fullmatch(r"[0-9a-f]{64}", release["sha256"]), release
    print(f"{len(recorded['depends_on'])} dependencies, {len(variants)} variants")


main(*sys.argv[1:])
