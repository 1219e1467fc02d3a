#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether the files that cannot read CONTACT say what it says.

usage: contact.py check|write ROOT      write: makes them say it
Exit status: 0 they do, 1 they do not, 64 wrong usage.
"""

import pathlib
import re
import sys

# {file: [(what is there, the key of CONTACT)]}: the group of the first match is the value.
PLACES = {
    "README.md": [(r"Report bugs at\s+<([^>]*)>", "bugs"), (r"and faults that others could use to\s+([^\s:]+)", "security")],
    "SECURITY.md": [(r"that others could use to ([^\s*]+)\*\*", "security")],
    "debian/changelog": [(r"^ -- (.*?)  ", "maintainer")],
    "debian/control": [(r"^Maintainer: (.*)$", "maintainer"), (r"^Homepage: (.*)$", "home")],
    "debian/upstream/metadata": [(r"^Bug-Database: (.*)$", "bugs"), (r"^Bug-Submit: (.*)$", "bugs"), (r"^Security-Contact: (.*)$", "security")],
    "packaging/ddlrun.spec": [(r"^URL: +(.*)$", "home"), (r"^BugURL: +(.*)$", "bugs"), (r"^%changelog\n\* \w+ \w+ \d+ \d+ (.*) - ", "maintainer")],
}
SHAPES = {"home": r"https?://\S+", "bugs": r"(https?://|mailto:)\S+", "security": r"\S+@\S+|https?://\S+", "maintainer": r"[^<>]+ <\S+@\S+>"}


def read_contact(root):
    """{key: value} of CONTACT, and what is wrong with it."""
    contact, problems = {}, []
    for number, line in enumerate((root / "CONTACT").read_text(encoding="utf-8").splitlines(), 1):
        key, _, value = line.partition(" = ")
        if line and not line.startswith("#"):
            contact[key] = value
            if not re.fullmatch(SHAPES.get(key, "(?!)"), value):
                problems.append(f"CONTACT:{number}: '{line}' is none of " + ", ".join(f"{known} = {shape}" for known, shape in SHAPES.items()))
    return contact, problems + [f"CONTACT: no {key}" for key in SHAPES if key not in contact]


def differences(root, contact, is_write):
    for name, places in PLACES.items():
        text = before = (root / name).read_text(encoding="utf-8")
        for pattern, key in places:
            found = re.search(pattern, text, re.MULTILINE)
            if found is None:
                yield f"{name}: no place for '{key}' of CONTACT: /{pattern}/"
            elif found[1] != contact[key] and not is_write:
                yield f"{name}: '{found[1]}', but CONTACT has {key} = {contact[key]}: python3 tests/lint/contact.py write ."
            elif found[1] != contact[key]:
                text = text[:found.start(1)] + contact[key] + text[found.end(1):]
        if text != before:
            (root / name).write_text(text, encoding="utf-8")


def main(arguments):
    if len(arguments) != 2 or arguments[0] not in ("check", "write"):
        print(__doc__, file=sys.stderr)
        return 64
    root = pathlib.Path(arguments[1])
    contact, problems = read_contact(root)
    problems = problems or list(differences(root, contact, arguments[0] == "write"))
    print("\n".join(problems) or "contact: ok")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
