#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Logs that are not as they should be: named, and the rest is shown.

load common

@test "an empty directory, and one that is not there" {
  mkdir empty
  expect=65 extract empty
  [ -z "$output" ]
  [[ $messages == "ddlbench: empty: there is no log that can be used, such as 1n1g/r50_b128_fp32_1.log" ]]
  expect=66 extract nowhere
  [[ $messages == "ddlbench: nowhere: cannot be read: No such file or directory; give a directory of logs"* ]]
}

@test "one bad directory does not hide the good one" {
  mkdir empty
  log good/1n1g/r50_b4_fp32_1.log 5 10.0 1
  expect=65 extract --train_batches=25 empty good
  [[ $output == *"| 1        | 1       | 10.00     | 1.00    | 10.00     | 1    | 4     |"* ]]
  [[ $output == *"Saving result to good/result/good_result.json"* ]]
  [ "$(cat good/result/good_result.json)" = '{"r50": {"1n1g": {"average_speed": 10.0, "batch_size_per_device": 4, "median_speed": 10.0, "speedup": 1.0}}}' ]
}

@test "tables are printed also where their file cannot be written, 71" {
  log w/1n1g/r50_b4_fp32_1.log 5 10.0 1
  : > w/result
  expect=71 extract --train_batches=25 w
  [[ $output == *"| 10.00     | 1    |"* ]]
  [[ $messages == *"cannot make the directory w/result: "*"; give ddlbench extract --output_dir DIR" ]]
}

@test "half a log, another shape, foreign bytes, a name that is none: each is named" {
  log w/1n1g/r50_b4_fp32_1.log 5 10.0 1
  log w/1n1g/r50_b4_fp32_2.log 5 20.0 1
  sed -i '1i caf\xe9' w/1n1g/r50_b4_fp32_2.log
  log w/1n1g/r50_b4_fp32_3.log 3 99.0 1
  log w/1n2g/r50_b4_fp32_1.log 5 99.0 1
  touch w/1n2g/note.log
  mkdir w/1n2g/r50_b4_fp32_9.log
  expect=65 extract --train_batches=25 w
  [[ $output == *"| 1        | 1       | 15.00     | 1.00    | 15.00     | 2    | 4     |"* ]]
  [[ $output != *99.00* ]]
  diff <(sort <<< "$messages") - << 'END'
ddlbench: note: w/1n1g/r50_b4_fp32_2.log:1: bytes that are no UTF-8; DLPerf's own scripts stop at them
ddlbench: w/1n1g/r50_b4_fp32_3.log:4: the log ends after 3 lines with imgs_per_sec of 5; it is left out
ddlbench: w/1n2g/note.log: its name is none such as r50_b128_fp32_1.log; it is left out
ddlbench: w/1n2g/r50_b4_fp32_1.log:1: Num GPUs is 1, but the directory's name says 2; the log is left out
ddlbench: w/1n2g/r50_b4_fp32_9.log: cannot be read: it is no regular file
END
}

@test "a log of 3 GB is read in the memory of a small one" {
  log w/1n1g/r50_b4_fp32_1.log 5 10.0 1
  log w/1n1g/r50_b4_fp32_2.log 3 99.0 1
  truncate -s 3G w/1n1g/r50_b4_fp32_2.log
  # Without the sanitizers' own terabytes.
  if grep -q '^DDLRUN_SANITIZE:STRING=$' "$DDLRUN_BUILD/CMakeCache.txt"; then ulimit -v 300000; fi
  expect=65 extract --train_batches=25 w
  [[ $output == *"| 10.00     | 1    |"* ]]
  [[ $messages == "ddlbench: w/1n1g/r50_b4_fp32_2.log:5: the log ends after 3 lines with imgs_per_sec of 5; it is left out" ]]
}
