#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Types a line into an interactive bash on a terminal, presses Tab and prints what the line has become.

usage: press_tab.py RCFILE LINE      RCFILE is what the shell reads at its start, such as the completion under test

Several candidates leave the line at what they have in common and are listed; then they are printed, one per line, instead.
"""

import os
import pty
import re
import select
import sys
import time

PRINT_LINE = "bind -x '\"\\C-x\\C-p\": printf \"<<%s>>\\n\" \"$READLINE_LINE\"'\n"
SETTINGS = ("bind 'set enable-bracketed-paste off'; bind 'set show-all-if-ambiguous on'; bind 'set completion-display-width 0'\n"
            "bind 'set page-completions off'; bind 'set bell-style none'; bind 'set completion-query-items 0'; PS1='> '\n")


def read_until(fd, pattern, seconds=20):
    text = ""
    end = time.monotonic() + seconds
    while not re.search(pattern, text, re.S):
        if not select.select([fd], [], [], max(0, end - time.monotonic()))[0]:
            sys.exit(f"press_tab.py: no {pattern!r} in {seconds} s: {text!r}")
        text += os.read(fd, 65536).decode(errors="replace")
    return text.replace("\r", "")


def main(rcfile, line):
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update(TERM="dumb", PS1="> ", HISTFILE="", LC_ALL="C")
        os.execvp("bash", ["bash", "--noprofile", "--rcfile", rcfile, "-i"])
    os.write(fd, (SETTINGS + PRINT_LINE + "echo rea''dy\n").encode())
    read_until(fd, r"ready\r?\n.*> $")
    os.write(fd, line.encode() + b"\t" + b"\x18\x10")  # Tab, then Ctrl-X Ctrl-P
    text = read_until(fd, r"<<.*>>")
    os.close(fd)
    os.waitpid(pid, 0)
    listed = text.split("<<")[0].split("\n")[1:-1]
    # What stands between the line and its print is the list, then the prompt with the line again.
    listed = [entry.strip() for entry in listed if entry.strip() and not entry.startswith("> ")]
    print("\n".join(listed) if listed else re.search(r"<<(.*)>>", text, re.S).group(1))


if __name__ == "__main__":
    main(*sys.argv[1:])
