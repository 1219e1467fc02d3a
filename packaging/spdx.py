#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes an SPDX 2.3 document (JSON) of ddlrun and of the libraries in NOTICE, to standard output.

usage: packaging/spdx.py --version VERSION --created SECONDS --home URL [--address URL] [--sha256 SUM] [--debian FILE.deb ...] < NOTICE

Without --debian it is of the sources: what a build links, and which versions, is its own affair.  With --debian it is of these
packages, which were made on this machine: its libraries have the versions that are installed here.  --address is where the tarball
with that checksum will be; an address that nobody can get it from (file:) is left out.  Standard library only.
"""

import argparse
import dataclasses
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import time
import urllib.parse

NVIDIA = {"licenseId": "LicenseRef-NVIDIA", "name": "Licence agreements of NVIDIA for CUDA and cuDNN",
          "extractedText": "The agreements that come with CUDA and cuDNN."}


@dataclasses.dataclass
class Library:
    """`texts` are notices and licences that have to go with programs that contain it."""

    name: str
    licence: str
    version: str = ""  # "" not known
    comment: str = ""
    copyright: str = "NOASSERTION"
    texts: tuple = ()
    is_contained: bool = False  # parts of it are in programs
    purl: str = ""


def read_notice(text):
    """[(Library, [Debian packages, or where else it comes from])] of NOTICE."""
    table, _, below = text.partition("\nParts of these are")
    notices = {}  # {name: notice}
    for name, notice in re.findall(r"^- ([^:]+): (.*\n(?:  .*\n)*)", below, re.MULTILINE):
        notices[name] = " ".join(notice.split())
    licences = dict(re.findall(r"^([A-Z0-9a-z-]+ license):\n((?:\n|  .*\n)+)", below, re.MULTILINE))
    rows = []
    for row in re.findall(r"^\| (?!library|-)(.*) \|$", table, re.MULTILINE):
        name, licence, packages, use = row.split(" | ")
        notice = next((notice for of, notice in notices.items() if of.split()[0].rstrip(",") == name.split()[0].rstrip(",")), None)
        library = Library(name, licence, comment=use, is_contained=notice is not None)
        if notice is not None:
            library.copyright = notice if notice.startswith("Copyright") else "NOASSERTION"
            library.texts = (notice, *(re.sub(r"^  ", "", text.strip("\n"), flags=re.MULTILINE)
                                       for kind, text in licences.items() if f" {kind}" in f" {notice}"))
        rows.append((library, packages.split(", ")))
    return rows


def installed(package):
    """(source package, version) that Debian has it of here; None where it is not installed."""
    done = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status} ${source:Package} ${Version}", package],
                          capture_output=True, text=True, check=False)
    status, _, rest = done.stdout.partition(" ")
    return tuple(rest.split()) if status == "installed" else None


def of_debian(rows, is_cuda):
    """Those libraries that are installed, with their versions; of NVIDIA's, which no package of Debian's has, the names."""
    for library, packages in rows:
        if is_cuda and packages == ["none of Debian's"]:
            yield library
        for package in packages:
            found = installed(package)
            if found is not None:
                source, version = found
                library.version = re.sub(r"^\d+:|-[^-]*$", "", version)
                library.purl = f"pkg:deb/debian/{source}@{urllib.parse.quote(version, safe='.~-')}"
                yield library
                break


def identifier(*words):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.]+", "-", "-".join(words)).strip("-")


def document(version, created, home, libraries, address="NOASSERTION", sha256="", files=()):
    """The document as a value.  `files` are packages that were made of the sources."""
    one = {"name": "ddlrun", "SPDXID": "SPDXRef-ddlrun", "versionInfo": version, "downloadLocation": address, "homepage": home,
           "filesAnalyzed": False, "licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0",
           "copyrightText": "Copyright 2026 the ddlrun contributors"}
    if sha256:
        one["checksums"] = [{"algorithm": "SHA256", "checksumValue": sha256}]
    packages, relationships = [one], [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-ddlrun")]
    for file in files:
        path = pathlib.Path(file)
        name, release = path.name.split("_")[:2]
        packages.append({**one, "name": name, "SPDXID": identifier("Package", name), "versionInfo": release, "packageFileName": path.name,
                         "downloadLocation": "NOASSERTION",
                         "checksums": [{"algorithm": "SHA256", "checksumValue": hashlib.sha256(path.read_bytes()).hexdigest()}]})
        relationships += [("SPDXRef-DOCUMENT", "DESCRIBES", identifier("Package", name)), (identifier("Package", name), "GENERATED_FROM", "SPDXRef-ddlrun")]
    for library in libraries:
        package = {"name": library.name, "SPDXID": identifier(library.name), "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
                   "licenseConcluded": library.licence, "licenseDeclared": library.licence, "copyrightText": library.copyright}
        if library.version:
            package["versionInfo"] = library.version
        if library.comment:
            package["comment"] = library.comment
        if library.texts:
            package["attributionTexts"] = list(library.texts)
        if library.purl:
            package["externalRefs"] = [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": library.purl}]
        packages.append(package)
        relationships.append(("SPDXRef-ddlrun", "STATIC_LINK" if library.is_contained else "DEPENDS_ON", package["SPDXID"]))
    made = {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"ddlrun-{version}",
            "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(created)), "creators": [f"Tool: packaging/spdx.py-{version}"]},
            "packages": packages,
            "relationships": [{"spdxElementId": of, "relationshipType": kind, "relatedSpdxElement": to} for of, kind, to in relationships]}
    if any(NVIDIA["licenseId"] in library.licence for library in libraries):
        made["hasExtractedLicensingInfos"] = [NVIDIA]
    # Each document has a name of its own.
    made["documentNamespace"] = f"{home}/spdx/ddlrun-{version}-{hashlib.sha256(json.dumps(made).encode()).hexdigest()}"
    return made


def main(arguments):
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    for name in ("--version", "--created", "--home"):
        parser.add_argument(name, required=True)
    parser.add_argument("--address", default="")
    parser.add_argument("--sha256", default="")
    parser.add_argument("--debian", nargs="+", default=[])
    given = parser.parse_args(arguments)
    rows = read_notice(sys.stdin.read())
    libraries = list(of_debian(rows, any("ddltraind-cuda_" in name for name in given.debian))) if given.debian else [library for library, _ in rows]
    address = given.address if re.match("https?://", given.address) else "NOASSERTION"
    made = document(given.version, int(given.created), given.home, libraries, address, given.sha256, given.debian)
    print(json.dumps(made, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main(sys.argv[1:])
