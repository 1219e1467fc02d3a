#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The words of doc/glossary.md in the code: words that nobody searches for are refused in identifiers, in help texts and in
messages, with the usual one.  Prints FILE:LINE: PROBLEM and exits 1 if there is any.

usage: words.py ROOT
"""

import pathlib
import re
import sys

FOLDERS = ("support", "rankfile", "scaling", "launcher", "trainer", "ddldata", "ddlctl", "manual", "bench")
SUFFIXES = (".h", ".cc", ".cu", ".cuh", ".c")

# A part of an identifier (RankPlan has rank and plan) -> the usual word.
IDENTIFIERS = {
    "spawner": "launcher",
    "guardian": "cleanup process",
    "fate": "export policy",
    "beats": "heartbeats",
    "heard": "received, responded",
    "unheard": "unresponsive",
    "told": "notified, requested, logged",
    "asked": "requested",
    "news": "event",
    "patience": "timeout",
    "folder": "directory",
    "folders": "directories",
    "complaint": "diagnostic",
    "complaints": "diagnostics",
    "refuse": "reject",
    "refusal": "rejection",
    "elsewhere": "remote",
    "wish": "pending request",
    "wishes": "pending requests",
    "race": "autotune, candidates",
    "raced": "autotuned",
    "racing": "autotuning",
    "pace": "launch configuration, rate",
    "paces": "launch configurations",
    "gated": "masked (ReLU mask)",
    "ungated": "unmasked",
    "unapplied": "before batch-norm backward",
    "averages": "EMA",
    "multiprocessors": "SMs",
    "painted": "synthetic",
    "painter": "image generator",
    "judge": "check",
}
# Beginnings and ends of identifiers -> the usual word.
PIECES = [
    (re.compile(r"^kMost(?![a-z])|^most(_|$)|_most$"), "max"),
    (re.compile(r"^kLeast(?![a-z])|^least(_|$)"), "min"),
    (re.compile(r"(Sums|Rate|Time|Room|Recipe|Decay|Next|Input)InWords$"), "Describe..., Format..."),
    (re.compile(r"^(can_)?go(es)?_(back|on)|GoBack|GoesBack|^GoOn$"), "roll back, resume, continue"),
]
# In help texts and messages.
MESSAGES = [
    (re.compile(r"numbers? that (is|are) none|\b(is|are) no numbers?\b", re.IGNORECASE), "NaN or infinite; not numeric"),
    (re.compile(r"\b(race[sd]?|racing)\b", re.IGNORECASE), "autotune"),
    (re.compile(r"\bat the pace\b|\bpaces\b", re.IGNORECASE), "speed, launch configuration"),
    (re.compile(r"\b(go|goes|going|gone) back\b", re.IGNORECASE), "roll back"),
    (re.compile(r"\b(go|goes|going) on\b", re.IGNORECASE), "continue, resume"),
    (re.compile(r"\bmade up\b|\bpainted\b", re.IGNORECASE), "synthetic"),
    (re.compile(r"\b(un)?heard\b", re.IGNORECASE), "received, responded"),
    (re.compile(r"\btold\b", re.IGNORECASE), "requested, notified"),
    (re.compile(r"\bfolders?\b", re.IGNORECASE), "directory"),
    (re.compile(r"\bin place of\b", re.IGNORECASE), "instead of"),
    (re.compile(r"\bspawner\b", re.IGNORECASE), "launcher"),
    (re.compile(r"\bto be had\b|\bcannot be had\b", re.IGNORECASE), "available"),
    (re.compile(r"\bsums over\b", re.IGNORECASE), "all-reduce"),
    (re.compile(r"\bcard\b", re.IGNORECASE), "GPU"),
]
# What the words mean in code of others: names of libraries, keys of files that keep their number.
ALLOWED = re.compile(r"DDLRUN_SPAWNER")

TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\((?:.|\n)*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Za-z])\'(?:\\.|[^\'\\\n])\'|[A-Za-z_]\w*',
                   re.DOTALL)
INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[^\n]*$", re.MULTILINE)
PARTS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


def word_of(identifier):
    """The old word in an identifier and the usual one; None if there is none."""
    for part in PARTS.findall(identifier):
        if part.lower() in IDENTIFIERS:
            return part, IDENTIFIERS[part.lower()]
    for piece, usual in PIECES:
        if old := piece.search(identifier):
            return old.group(0), usual
    return None


def tokens_of(text):
    """LINE, TOKEN for each; literals that stand next to each other are one text, as for the compiler."""
    joined, end = [], -1
    for token in TOKEN.finditer(text):
        piece = token.group(0)
        is_text = piece.startswith('"')
        if joined and is_text and not text[end : token.start()].strip():
            joined[1] = joined[1][:-1] + piece[1:]
        else:
            if joined:
                yield joined
            joined = [text.count("\n", 0, token.start()) + 1, piece]
        if not is_text:
            yield joined
            joined = []
        end = token.end()
    if joined:
        yield joined


def problems_of(text):
    """LINE, PROBLEM for each old word in the identifiers and texts of a source."""
    text = INCLUDE.sub("", text)
    for line, piece in tokens_of(text):
        if piece.startswith(("//", "/*", "'")) or ALLOWED.search(piece):
            continue
        if '"' in piece:
            for message, usual in MESSAGES:
                if old := message.search(piece):
                    yield line, f"'{old.group(0)}' in a text: say {usual} (doc/glossary.md)"
        elif old := word_of(piece):
            yield line, f"'{old[0]}' in {piece}: say {old[1]} (doc/glossary.md)"


def main(root):
    found = 0
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix in SUFFIXES:
                for line, problem in problems_of(file.read_text(encoding="utf-8")):
                    print(f"{file.relative_to(root).as_posix()}:{line}: {problem}")
                    found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
