#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# ddlbench report: of real trainings, of files that are not as they should be, and of large ones. report_browser.py looks at the page.

load common

# report OPTIONS...: status, standard output in $output, the rest in $messages.
report() {
  run_separate timeout 500 "$ddlbench" report "$@"
}

# made_runs FOLDER [STEPS]: runs of 1, 2 and 4 ranks, two of each, whose numbers are known.
made_runs() {
  PYTHONPATH=$BATS_TEST_DIRNAME PYTHONDONTWRITEBYTECODE=1 python3 -c "import made_runs, sys; made_runs.make(sys.argv[1], steps=int(sys.argv[2]))" "$1" "${2:-60}"
}

@test "a sweep over ranks ends in a report of its real trainings, whose numbers are those of the raw times" {
  expect=0 sweep --cases=1n1g,1n2g --repeats=2
  expect=0 report --output=page/report.html --json w
  [ "$messages" = "report written: page/report.html" ]
  grep -q '<svg id="scaling"' page/report.html
  python3 "$BATS_TEST_DIRNAME/recompute.py" <(echo "$output") w
  # What the program says of itself.
  [ "$(jq -r '.runs[0].environment.program' <<< "$output")" = "ddltraind $("$ddlbench" --version | head -n 1)" ]
  [[ $(jq -r '.runs[0].environment.command' <<< "$output") == "ddltraind "*"--batch_size=4"* ]]
  [ "$(jq -c '[.runs[].ranks]' <<< "$output")" = "[1,1,2,2]" ]
  expect=0 report --text w
  [[ $output == *"# Speed"*"# Scaling"*"# Differences"*"# Environment"* ]]
  [ ! -e report.html ]
}

@test "runs whose numbers are known: scaling, differences, phases, energy, accuracy" {
  made_runs r
  expect=0 report --json r
  python3 "$BATS_TEST_DIRNAME/recompute.py" <(echo "$output") r
  report --text r
  [[ $output == *"90.0 %"* ]]
  [[ $output != *predicted* ]]
  report --text --site=bede r
  [[ $output == *"efficiency  predicted"* ]]
  [ "$(jq '.scaling[0].points[0] | (.predicted / .images_per_second.value * 1000 | round)' <(report_json --site=bede r))" = 1000 ]
  expect=78 report --text --site=./nowhere.yaml r
  # 200 W over 50 images/s and a bit; 21 and 22 ms, 5 phases of a rank of its own.
  [ "$(jq '.runs[0].power_watts' <(report_json r))" = 200 ]
  [ "$(jq '.runs[2].rank_times[1].phase_seconds.forward' <(report_json r))" = 0.024 ]
  [ "$(jq '.runs[3].top1_accuracy' <(report_json r))" = 0.72 ]
}

report_json() {
  "$ddlbench" report --json "$@"
}

@test "without an option it is a page in this directory" {
  made_runs r
  expect=0 report --title='A <title>' --baseline=1n2g/1 r
  [ -z "$output" ]
  [ "$messages" = "report written: report.html" ]
  grep -q '<h1>A &lt;title&gt;</h1>' report.html
  python3 - << 'END'
import html.parser
VOID = {"meta", "br"}
class Checker(html.parser.HTMLParser):
    open = []
    def handle_starttag(self, tag, attributes):
        if tag not in VOID:
            self.open.append(tag)
        assert len(dict(attributes)) == len(attributes), (tag, attributes)
    def handle_startendtag(self, tag, attributes):
        pass
    def handle_endtag(self, tag):
        assert self.open.pop() == tag, (tag, self.getpos())
checker = Checker()
checker.feed(open("report.html", encoding="utf-8").read())
assert not checker.open, checker.open
END
}

@test "an empty directory, half a log, foreign bytes, runs of different shapes: each is named, and the rest is shown" {
  made_runs r
  mkdir empty
  # Half a log, ended within a line.
  head -c 5000 r/1n1g/2/log.json > half
  mv half r/1n1g/2/log.json
  # Bytes that are no UTF-8, in a line of the log and in names.
  sed -i '5s/DLLL {/DLLL {"caf\xe9": 1, /' r/1n2g/2/log.json
  mv r/1n4g/2 $'r/1n4g/caf\xe9'
  # Another shape: another batch.
  sed -i 's/"batch_size": 8/"batch_size": 16/' r/1n2g/1/log.json
  printf 'no log\n' > r/1n4g/1/log.json
  printf '{"iter"' > r/1n4g/1/training.json
  expect=65 report r empty nowhere
  [[ $messages == *"empty: there is no run in it"* ]]
  [[ $messages == *"nowhere: there is no such directory"* ]]
  [[ $messages == *"r/1n1g/2/log.json:"*": the log ends within this line"* ]]
  [[ $messages == *"r/1n2g/2/log.json:5: it has bytes that are no UTF-8"* ]]
  [[ $messages == *"r/1n4g/1/log.json: it has no line of DLLogger's"* ]]
  [[ $messages == *"r/1n4g/1/training.json: it is no training.json"* ]]
  # The page is whole, and is UTF-8.
  iconv -f utf-8 -t utf-8 report.html > /dev/null
  grep -q 'messages about the files' report.html
  grep -q '<svg id="scaling"' report.html
  report --json r
  [ "$(jq '.runs | length' <<< "$output")" -eq 6 ]
  [ "$(jq -r '[.groups[].name] | join("; ")' <<< "$output")" = \
    "1 rank, batch_size=8; 2 ranks, batch_size=16; 2 ranks, batch_size=8; 4 ranks; 4 ranks, batch_size=8" ]
}

@test "no run at all: no page, 65 or 66" {
  mkdir empty
  expect=65 report empty
  expect=66 report nowhere
  [ ! -e report.html ]
}

@test "a page that cannot be written, 71" {
  made_runs r 5
  expect=71 report --output=/proc/nowhere/report.html r
  [[ $messages == *"/proc/nowhere"* ]]
  [ -w /dev/full ] || skip "there is no /dev/full"
  run -71 bash -c "\"$ddlbench\" report --text r > /dev/full"
}

# made_log MIB: run/log.json of so many MiB, in lines of 1,000 steps that come again and again.
made_log() {
  mkdir -p run
  made_runs r 1000
  head -n 2 r/1n1g/1/log.json > run/log.json
  sed -n 3,1002p r/1n1g/1/log.json > steps
  cat $(yes steps | head -n $(($1 * 1048576 / $(stat -c %s steps)))) >> run/log.json
}

@test "a log of hundreds of MB, and one of 10 GB without lines, are read in the memory of small ones" {
  made_log 200
  [ "$(stat -c %s run/log.json)" -gt 200000000 ]
  mkdir huge
  head -n 30 r/1n1g/1/log.json > huge/log.json
  truncate -s 10G huge/log.json
  # Without the sanitizers' own terabytes.
  if grep -q '^DDLRUN_SANITIZE:STRING=$' "$DDLRUN_BUILD/CMakeCache.txt"; then ulimit -v 150000; fi
  expect=0 report --json run huge
  [[ $messages == *"huge/log.json:31: the log ends within this line"* ]]
  [ "$(jq '.runs[0].steps' <<< "$output")" -gt 500000 ]
  [ "$(jq '.runs[1].steps' <<< "$output")" -eq 28 ]
  # 1,000 steps come again and again, so that their mean is that of all.
  report --json r/1n1g/1
  jq -e --argjson few "$(jq '.runs[0].images_per_second.value' <<< "$output")" \
    '.runs[0].images_per_second.value | . - $few | fabs < 1e-6 * $few' <(report_json run)
}

@test "a run that goes on is shown as far as it is" {
  made_runs r 5
  truncate -s -20 r/1n1g/1/log.json
  expect=0 report --text r/1n1g/1
  [[ $messages == "ddlbench: note: r/1n1g/1/log.json:"*"the run was killed, or is still running"* ]]
  [[ $output == *"the log ends within a line"* ]]
}
