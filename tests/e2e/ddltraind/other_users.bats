#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What other users put into a directory where a run writes.

load common

@test "logs are not appended through links, to FIFOs, or to files of another user" {
  mkdir run
  echo mine > victim
  ln -s "$PWD/victim" run/log.json
  chmod 1777 run
  expect=71 train 1 --num_iter=2 --mode=train --results_dir=run
  [[ $messages == *"cannot write 'run/log.json': it is a symbolic link, which is not followed; remove it, or give "* ]]
  [ "$(cat victim)" = mine ]
  chmod 755 run # in a directory of the user's own a link is followed
  expect=0 train 1 --num_iter=2 --mode=train_and_evaluate --results_dir=run --mllog=/dev/stdout
  grep -q '^DLLL' victim
  [[ $output == *:::MLLOG* ]]

  rm run/log.json
  mkfifo run/log.json
  sleep 60 < run/log.json 3>&- & # opens when somebody writes
  reader=$!
  expect=71 train 1 --num_iter=2 --mode=train --results_dir=run
  kill "$reader"
  [[ $messages == *"cannot write 'run/log.json': it is no file; remove it, or give "* ]]

  [ "$(id -u)" -eq 0 ] || skip "another user's file is made by root alone"
  rm run/log.json
  : > run/log.json
  chown 12345 run/log.json
  chmod 666 run/log.json
  expect=71 train 1 --num_iter=2 --mode=train --results_dir=run
  [[ $messages == *"cannot write 'run/log.json': it is a file of another user; remove it, or give "* ]]
  [ ! -s run/log.json ]
}

@test "a manifest of another's making is refused, not obeyed" {
  expect=0 train 1 --num_iter=2 --mode=train --results_dir=run
  manifest=run/checkpoints/step-0000000002/manifest.json
  python3 -c "n = 200000; print('{\"crc32c\":\"00000000\",\"manifest\":' + '[' * n + ']' * n + '}')" > $manifest
  expect=65 train 1 --num_iter=4 --mode=train --results_dir=run
  [[ $messages == *"$manifest: not the manifest of a checkpoint: it is nested deeper than 8 levels"* ]]
}

@test "a name with control characters moves no cursor and makes no line" {
  bad=$'j\nddlrun: forged \e]0;PWN\a \xe2\x80\xae'
  expect=64 train 1 --num_iter=2 --mode=train --results_dir=run --resume_from=5 --model_dir="$bad"
  [[ $messages == *'j\x0addlrun: forged \x1b]0;PWN\x07 \u202e'* ]]
}

# other COMMAND...: as another user.
other() { setpriv --reuid 12346 --regid 12346 --clear-groups "$@"; }

@test "who can only read a directory cannot hold the lock of its training, nor stop it" {
  [ "$(id -u)" -eq 0 ] || skip "another user is for root alone"
  cd "$(mktemp -d /tmp/ddlrun-users.XXXXXX)" # which others may enter, unlike that of the tests
  chmod 755 .
  mkdir -m 1777 run
  umask 022
  launcher=local start_training 1 --num_iter=1000000 --mode=train --results_dir=run
  wait_for 60 grep -q "iteration: " out
  [ "$(stat -c %a run/.ddltraind.lock)" = 640 ]
  run other flock --shared --nonblock run/.ddltraind.lock true
  [ "$status" -ne 0 ]
  [[ $output == *"Permission denied"* ]]

  other touch run/stop
  wait_for 60 grep -q "warning: run/stop is of another user: it is not obeyed" err
  [ "$(grep -c 'of another user' err)" -eq 1 ]
  rm run/stop
  touch run/stop
  expect=75 end_of_training
  rm -r "$PWD"
}
