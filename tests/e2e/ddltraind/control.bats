#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A training of two ranks that is watched and asked while it runs, by ddlctl and by whoever finds its socket.

load common

ctl() { timeout 60 "$DDLRUN_BUILD/bin/ddlctl" "$@"; }

# start_run OPTIONS...: in the directory run, until it is in its midst.
start_run() {
  launcher=local start_training 2 --mode=train --results_dir=run --checkpoint_every=0 "$@"
  wait_for 30 grep -qs "iteration: 20" out
}

# What the status of the run in `run` says of NAME.
says() { ctl status run | sed -n "s/^$1  *//p"; }

socket_of_run() { sed 's/.*"socket":"\([^"]*\)".*/\1/' run/.ddltraind.control; }

@test "evaluate: once, between two steps; refused where there is nothing to evaluate with" {
  start_run --num_iter=1000000
  run -75 ctl evaluate run
  [[ $output == *"it has no images to evaluate with: --mode=train_and_evaluate has"* ]]
  ctl stop run
  end_of_training
  start_run --num_iter=1000000 --mode=train_and_evaluate
  run ctl evaluate run
  echo "$output"
  [[ $output == "evaluated after step "[0-9]*"/1000000; its log says what was found" ]]
  [ "$(grep -c "info: evaluation of " err)" -eq 1 ]
  wait_for 10 grep -q "the best so far: the checkpoint of step " err
  ctl stop run
  expect=75 end_of_training
}

@test "pause, checkpoint, set and resume: the run ends bit for bit as one that nobody has asked" {
  launcher=local expect=0 train 2 --mode=train --results_dir=alone --num_iter=3000 --checkpoint_every=0
  # As soon as it can be asked, or it is over before that: a step takes 2 ms.
  launcher=local start_training 2 --mode=train --results_dir=run --num_iter=3000 --checkpoint_every=0 --hang_floor_seconds=1
  wait_for 30 eval 'paused=$(ctl pause run 2> /dev/null)'
  echo "$paused"
  [[ $paused == "paused after step "[0-9]*"/3000" ]]
  local step=${paused#paused after step }
  step=${step%/*}
  [ "$(says state)" = paused ]
  # Longer than a rank may be silent that is not paused.
  sleep 3
  [ "$(says state)" = paused ]
  [ "$(says progress)" = "step $step/3000" ]
  [ "$(ctl checkpoint run)" = "the checkpoint of step $step is written" ]
  [ -e "run/checkpoints/step-$(printf %010d "$step")/manifest.json" ]
  [ "$(says state)" = paused ]
  [ "$(ctl set display_every=1 run)" = "display_every is 1" ]
  [[ $(ctl resume run) == "resumed after step "[0-9]*"/3000" ]]
  expect=0 end_of_training
  grep -q "info: paused after step $step: ddlctl resume continues it" err
  grep -q "info: resumed after step $step, paused for 0:00:" err
  grep -q "iteration: 2999" out
  cmp {alone,run}/checkpoints/step-0000003000/model.safetensors
  cmp {alone,run}/checkpoints/step-0000003000/optimizer.safetensors
  [ "$(says state)" = "done" ]
  [ "$(says progress)" = "step 3000/3000" ]
}

@test "stacks: where all ranks are, again and again; the run ends bit for bit as one that nobody has asked" {
  # The ranks look each second whether they are asked.
  local limit=200
  launcher=local expect=0 train 3 --mode=train --results_dir=alone --num_iter=6000 --checkpoint_every=0
  launcher=local start_training 3 --mode=train --results_dir=run --num_iter=6000 --checkpoint_every=0
  wait_for 30 eval 'ctl stacks run > grouped 2> note'
  cat grouped note
  # Each rank in one of the groups, whose first frames have names.
  [ "$(grep -cE '^ranks? [0-2].* on .* \([1-3] of 3\): (in training, step|before the first step)' grouped)" -ge 1 ]
  [ "$(grep -oE '\(([1-3]) of 3\)' grouped | tr -dc '1-3 \n' | awk '{ sum += $1 } END { print sum }')" -eq 3 ]
  grep -qE '^  #[0-9]+ main in ddltraind\(\+0x[0-9a-f]+\)$' grouped
  [[ $(cat note) == "ddlctl: all threads are in $PWD/run/stacks/rank-N.txt, and in ddlctl stacks --all-threads" ]]
  # All threads of a rank, as its file has them.
  ctl stacks --all-threads run > all
  [ "$(grep -c "^rank [0-2] on " all)" -eq 3 ]
  [ "$(grep -c "^thread " all)" -gt 3 ]
  while ctl stacks run > again; do grep -q " of 3)" again; done
  expect=0 end_of_training
  cmp {alone,run}/checkpoints/step-0000006000/model.safetensors
  cmp {alone,run}/checkpoints/step-0000006000/optimizer.safetensors
}

@test "status says where the training is, as text and as JSON" {
  start_run --num_iter=1000000
  run ctl status run
  expect_status 0
  [[ $output == "state          training"$'\n'"progress       step "[0-9]*"/1000000"$'\n'*" images/s, "*" ms a step"* ]]
  [ "$(grep -cE "^[> ] rank [01], .* ms +[+][0-9]+ %  data" <<< "$output")" -eq 2 ]
  [[ $output == *"ranks          2"$'\n'"rank 0         process $(ranks_here 0) on $(uname -n)"* ]]
  ctl status --json run | python3 -c '
import json, sys
status = json.load(sys.stdin)
assert status["state"] == "training" and status["steps"] == 1000000 and status["ranks"] == 2, status
assert status["loss"] > 0 and status["images_per_second"] > 0 and status["eta_seconds"] > 0, status
assert status["checkpoint_step"] is None and status["asked"] == [], status
assert status["phase_seconds"]["forward"] > 0, status
loads = status["rank_loads"]
assert [load["rank"] for load in loads] == [0, 1], loads
assert all(load["host"] and load["own_seconds"] > 0 and load["input_wait_seconds"] >= 0 for load in loads), loads
assert abs(min(load["own_seconds"] for load in loads) - status["median_own_seconds"]) < 1e-5, status
assert all(load["gpu_busy_percent"] is None for load in loads), loads'
  ctl stop run
  expect=75 end_of_training
}

@test "stop: a checkpoint, 75, the cause is said, and the same command goes on" {
  start_run --num_iter=1000000
  run ctl stop run
  expect_status 0
  [[ $output == "stopped after step "[0-9]*"/1000000, with the checkpoint of step "[0-9]* ]]
  local step=${output##* }
  expect=75 end_of_training
  grep -q "warning: stopped by ddlctl after step $step: give the same command again to resume" err
  [ -e "run/checkpoints/step-$(printf %010d "$step")/manifest.json" ]
  launcher=local expect=0 train 2 --mode=train --results_dir=run --num_iter=$((step + 3))
  [[ $messages == *"resumed from step $step,"* ]]
}

@test "signals and the file stop end a pause too" {
  start_run --num_iter=1000000
  ctl pause run
  kill -TERM "$job"
  expect=75 end_of_training
  launcher=local start_training 2 --mode=train --results_dir=run --num_iter=1000000
  wait_for 30 ctl pause run
  touch run/stop
  expect=75 end_of_training
  [ ! -e run/stop ]
}

@test "watch writes a line now and then, and ends with the training" {
  start_run --num_iter=1000000
  ctl watch --interval=0.2 run > seen &
  local watching=$!
  wait_for 10 eval '[ "$(wc -l < seen)" -ge 2 ]'
  ctl stop run
  wait "$watching"
  cat seen
  end_of_training
  [ "$(grep -cE '^20[0-9-]*T[0-9:+-]* (training|checkpointing|stopping|done) step [0-9]+/1000000 [0-9.]+ images/s loss [0-9.]+ eta [0-9:d ]+ checkpoint ' seen)" -eq "$(wc -l < seen)" ]
  [[ $(tail -n 1 seen) == *" done step "* ]]
  run ! grep -q $'\x1b' seen
}

@test "watch on a terminal draws lines of less than 80 columns in place" {
  start_run --num_iter=1000000
  python3 - "$DDLRUN_BUILD/bin/ddlctl" > drawn << 'END'
import fcntl, os, pty, struct, subprocess, sys, termios
master, slave = pty.openpty()
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
watch = subprocess.Popen([sys.argv[1], "watch", "--interval=0.2", "run"], stdout=slave, env={**os.environ, "LC_ALL": "C"})
text = b""
while text.count(b"\x1b[J") < 3:
    text += os.read(master, 4096)
watch.kill()
frames = text.decode().split("\x1b[J")
assert "\x1b[14A\r" in frames[1], frames[1]
for frame in frames[:3]:
    lines = frame.replace("\x1b[14A\r", "").replace("\x1b[K", "").split("\r\n")
    assert len(lines) == 15 and all(len(line) < 80 for line in lines), lines
print(frames[1])
END
  cat drawn
  grep -q "^images/s  .*[0-9]  [-_.~=+*#]" drawn
  grep -q "^own time, median  *[0-9.]* ms  of 2 ranks; >: slowest" drawn
  grep -q "^> rank [01], .* ms  *[+]" drawn
  # A terminal that knows no escape sequences gets lines.
  for terminal in dumb ''; do
    TERM=$terminal timeout 60 script -qfec "'$DDLRUN_BUILD/bin/ddlctl' watch --interval=0.2 run" /dev/null > lines &
    wait_for 20 eval '[ "$(grep -c " images/s loss " lines)" -ge 2 ]'
    kill $!
    run ! grep -q $'\x1b' lines
  done
  ctl stop --no-wait run
  end_of_training
}

@test "what is no message is refused and changes nothing" {
  start_run --num_iter=1000000
  python3 - "$(socket_of_run)" << 'END'
import json, os, random, socket, sys
random.seed(1)
stop = b'{"protocol":1,"do":"stop"}'
noise = [b"", b"\n", b"stop\n", stop, stop[1:] + b"\n", stop.replace(b"1", b"2") + b"\n", b"[" * 4000 + b"\n", b" " * 10000 + stop + b"\n"]
noise += [os.urandom(random.randrange(6000)) for _ in range(200)]
for message in noise:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(sys.argv[1])
        try:
            connection.sendall(message)
            connection.shutdown(socket.SHUT_WR)
            answer = connection.makefile("rb").readline()
        except (BrokenPipeError, ConnectionResetError):
            continue
        assert not answer or "not understood" in json.loads(answer)["refused"], (message, answer)
END
  [ "$(says state)" = training ]
  run says "asked for"
  [ -z "$output" ]
  ctl stop run
  expect=75 end_of_training
}

@test "its socket is in a private directory, and nothing listens on TCP" {
  start_run --num_iter=1000000
  socket=$(socket_of_run)
  [ "$(stat -c '%a %u' "$(dirname "$socket")")" = "700 $(id -u)" ]
  [[ $(dirname "$socket") == "$BATS_TEST_TMPDIR"/tmp/ddlrun.* ]]
  if command -v ss > /dev/null; then
    for rank in 0 1; do run ! grep -q "pid=$(ranks_here "$rank")," <<< "$(ss -ltnp)"; done
  fi
  ctl stop run
  end_of_training
  [ ! -e "$socket" ]
}

@test "one that was started by hand makes a directory of its own and removes it" {
  unset XDG_RUNTIME_DIR
  "$ddltraind" "${small[@]}" --mode=train --results_dir=run --num_iter=1000000 > out 2> err 3>&- &
  local alone=$!
  wait_for 30 grep -qs "iteration: 20" out
  [[ $(socket_of_run) == "$BATS_TEST_TMPDIR"/tmp/ddltraind.*/"$alone".socket ]]
  [ "$(stat -c %a "$(dirname "$(socket_of_run)")")" = 700 ]
  kill -KILL "$alone"
  wait "$alone" || true
  run -69 --separate-stderr ctl status run
  [[ $stderr == "ddlctl: the training in run does not run any more: rank 0, process $alone on $(uname -n), was killed, or ended without last words"* ]]
  # The next one removes what is left.
  "$ddltraind" "${small[@]}" --mode=train --results_dir=run --num_iter=30 > out 2> err
  [ -z "$(find tmp -mindepth 1 -maxdepth 1 ! -name "ddltraind-$(id -u)")" ] # which has the scans of record headers
  [ "$(says state)" = "done" ]
  # Nor has one with nothing left to do lost its steps.
  "$ddltraind" "${small[@]}" --mode=train --results_dir=run --num_iter=30 > out 2> err
  [ "$(says state), $(says progress)" = "done, step 30/30" ]
}

@test "misuse is said in one line, with what to do" {
  refused() { # CODE TEXT ARGUMENT...
    local code=$1 text=$2
    shift 2
    run --separate-stderr ctl "$@"
    echo "$* -> $status: $stderr"
    [ "$status" -eq "$code" ]
    [[ $stderr == "ddlctl: "*"$text"* ]]
  }
  refused 64 "a command is missing: status, watch, pause, resume, checkpoint, evaluate, stop, set, stacks, why, history or attach (ddlctl --help)"
  refused 64 "RESULTS_DIR is required" status
  refused 64 "unknown argument --jsn; did you mean --json?" status --jsn run
  refused 64 "needs display_every=N, N from 1, not 'display_every=0'" set display_every=0 run
  refused 69 "there is no training in run that can be asked (no .ddltraind.control in it)" status run
  train 1 --mode=train --results_dir=run --num_iter=5
  refused 64 "unknown argument --all-thread; did you mean --all-threads?" stacks --all-thread run
  refused 69 "the training in run has ended: done, step 5/5" pause run
  refused 69 "the training in run has ended: done, step 5/5" stacks run
  [ "$(says state)" = "done" ]
  ctl watch run
  sed -i 's/"host":"[^"]*"/"host":"n2"/; s/"last":{.*}/"last":null}/' run/.ddltraind.control
  refused 69 "the training runs on n2, not on this machine: log in to n2 and type: ddlctl resume run; or name its job of Slurm: --job N" resume run
  refused 69 "the training runs on n2, not on this machine: log in to n2 and type: ddlctl stop --job=7 --srun=never run" stop --job=7 --srun=never run
  echo '{' > run/.ddltraind.control
  refused 65 "run/.ddltraind.control: not written by a ddltraind of this version" status run
}

@test "help and version of ddlctl on a full disk: 71" {
  [ -w /dev/full ] || skip "there is no /dev/full"
  for arguments in --help 'status --help' --version; do
    run bash -c "\"$DDLRUN_BUILD/bin/ddlctl\" $arguments > /dev/full"
    [ "$status" -eq 71 ] || { echo "'$arguments' exits $status"; false; }
    [ "$output" = 'ddlctl: cannot write the output: No space left on device' ]
  done
}

@test "an order that its state does not allow is refused with 75" {
  start_run --num_iter=1000000
  run -75 --separate-stderr ctl resume run
  [ "$stderr" = "ddlctl: it is not paused: its state is training" ]
  ctl stop run
  end_of_training
}
