#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The directories of a run: two runs in one, a used one, checkpoints that cannot be read, disks that are full, and what
# another user of the machine can see of them.

load common

steps=200
last=checkpoints/step-0000000200

# What ddltraind alone, without a launcher, says: $messages, $output, $status.
alone() {
  run_separate timeout 60 "$ddltraind" "${small[@]}" "$@"
  echo "$status: $stderr"
}

refused() {
  local code=$1 text=$2
  shift 2
  alone "$@"
  [ "$status" -eq "$code" ]
  [[ $messages == *"ddltraind: $text"* ]]
}

trained() {
  expect=0 alone --mode=train --results_dir=run "$@"
}

# A run in this directory that lasts until it is killed: its process number is $holder.
hold() {
  timeout 60 "$ddltraind" "${small[@]}" --mode=train --num_iter=1000000 --checkpoint_every=0 --results_dir=run > out 2> err 3>&- &
  wait_for 20 test -s run/.ddltraind.lock
  wait_for 20 grep -q iteration out
  holder=$(ranks_here)
}

end_holder() {
  kill -KILL "$holder"
  wait_for 10 eval '[ -z "$(ranks_here)" ]'
}

@test "a second run in the same directory is refused by name, 78, and goes on once the first is killed" {
  hold
  refused 78 "run is in use by ddltraind on $(uname -n), pid $holder, since 20" --mode=train --num_iter=2 \
    --results_dir=run
  [[ $messages == *"is in use by "*": waiting up to 5 s for its end"* ]]
  [[ $messages == *"end it (kill $holder)"* ]]
  SLURM_JOB_ID=12 refused 78 "run is in use by" --num_iter=2 --model_dir=run --results_dir=other
  [ ! -e run/checkpoints ]
  # What only reads, or keeps no weights, is not in the way.
  expect=0 alone --mode=training_benchmark --num_iter=2 --warmup_steps=1 --results_dir=run
  end_holder
  [ -e run/.ddltraind.lock ]
  trained --num_iter=2
  [ ! -e run/.ddltraind.lock ]
}

@test "two ranks: one line says who has the directory, and no process is left" {
  hold
  launcher=local train 2 --mode=train --num_iter=2 --results_dir=run
  echo "$messages"
  end_holder
  [ "$status" -eq 78 ]
  [ "$(grep -c "^ddltraind: .*run is in use by ddltraind on $(uname -n), pid $holder" <<< "$messages")" -eq 1 ]
}

@test "--resume=never in a used directory is refused before the first step, 78, and changes nothing" {
  trained --num_iter=6
  find run/checkpoints -type f -exec md5sum {} + > before
  refused 78 "run/checkpoints holds 1 checkpoint up to step 6 of another run, and --resume=never would mix" \
    --mode=train --num_iter=2 --results_dir=run --resume=never --export_dir=final
  [[ $output != *iteration* ]]
  md5sum -c before
  [ "$(ls run/checkpoints)" = step-0000000006 ]
  [ -z "$(ls -A final)" ]
  trained --num_iter=2 --resume=never --model_dir=new
  [ "$(ls new/checkpoints)" = step-0000000002 ]
  # What a restarted run finds is its own.
  DDLRUN_RESTART_COUNT=1 expect=0 alone --mode=train --num_iter=8 --results_dir=run --resume=never
  [[ $messages == *"resumed from step 6"* ]]
}

@test "a run that ends before the checkpoint is refused, 78, and exports nothing" {
  trained --num_iter=6
  refused 78 "run/checkpoints/step-0000000006 is after the end of this run, which is step 3: give a larger --num_iter" \
    --mode=train --num_iter=3 --results_dir=run --export_dir=final
  [ -z "$(ls -A final)" ]
}

@test "what has changed since the checkpoint is said" {
  trained --num_iter=8 --run_iter=2
  trained --num_iter=8 --run_iter=2
  [[ $messages != *"changed since"* ]]
  unnumbered less
  rm less/train-00007
  expect=0 alone --mode=train --num_iter=8 --run_iter=2 --results_dir=run --lr_init=0.5 --image_size=64 --data_dir=less
  [[ $messages == *"changed since step 4: --image_size 32 (now 64)"$'\n'* ]]
  [[ $messages == *"changed since step 4: --lr_init 0.1 (now 0.5)"$'\n'* ]]
  [[ $messages == *"changed since step 4: training data 200 images in 8"*" (now 175 images in 7 "*"; the order is another one"* ]]
  [ "$(grep -c "changed since" <<< "$messages")" -eq 3 ]
  small=("${small[@]/--batch_size=8/--batch_size=4}")
  expect=0 train 2 --mode=train --num_iter=8 --results_dir=run --lr_init=0.5 --image_size=64 --data_dir=less --threads=3
  [[ $messages == *"changed since step 6: ranks 1 (now 2); "* ]]
  [[ $messages == *"changed since step 6: --threads "*" (now 3); sums are added in another order"* ]]
  [[ $messages == *"changed since step 6: --batch_size 8 (now 4)"$'\n'* ]]
  [ "$(grep -c "changed since" <<< "$messages")" -eq 3 ]
}

@test "a newest checkpoint that cannot be read is passed over, and the end is the same, bit for bit" {
  trained --num_iter=$steps
  mv run whole
  for damage in 'echo text > $it' 'ln -s step-0000000100 $it' 'mkdir -p $it/manifest.json' \
    'mkdir $it; truncate -s 200G $it/manifest.json' 'mkdir $it; mkfifo $it/manifest.json'; do
    echo "$damage"
    trained --num_iter=$steps --run_iter=60 --checkpoint_every=50
    local it=run/checkpoints/step-0000000100
    eval "$damage"
    trained --num_iter=$steps --checkpoint_every=50
    [[ $messages == *"passed over for the checkpoint before it"*"resumed from step 60"* ]]
    [[ $messages == *"it is now $it.unusable"* ]]
    cmp {whole,run}/$last/model.safetensors
    cmp {whole,run}/$last/optimizer.safetensors
    [ -d $it ]
    rm -r run
  done
}

@test "log.json on a full disk is said, and the training goes on" {
  mkdir run
  ln -s /dev/full run/log.json
  expect=0 alone --mode=train_and_evaluate --num_iter=30 --results_dir=run
  [ "$(grep -c "warning: run/log.json: lines are lost: No space left on device" <<< "$messages")" -eq 1 ]
  [[ $messages =~ "run/log.json: "1[0-9]" lines lost" ]]
  [ "$(grep -c "^DLL" <<< "$output")" -gt 9 ]
}

@test "standard output on a full disk is said; where it is the result, the end is 71" {
  run timeout 60 bash -c '"$@" > /dev/full' bash "$ddltraind" "${small[@]}" --mode=train --num_iter=3 --results_dir=run
  expect_status 0
  [[ $output == *"warning: standard output: lines are lost: No space left on device"* ]]
  [[ $output =~ "standard output: "[0-9]+" lines lost" ]]
  for options in "--mode=evaluate --results_dir=run" "--dry_run" "--version" "--help"; do
    run timeout 60 bash -c '"$@" > /dev/full' bash "$ddltraind" "${small[@]}" $options
    expect_status 71 "$options: $status $output"
    [[ $output == *"ddltraind: standard output could not be written"* ]]
  done
}

@test "a log that cannot be written says why, 71" {
  mkdir -p run/log.json
  refused 71 "cannot write 'run/log.json': Is a directory; check it, or give another --results_dir or --log_filename" \
    --num_iter=2 --results_dir=run
  rmdir run/log.json
  mkfifo run/log.json
  refused 71 "cannot write 'run/log.json': it is no file; remove it, or give another --results_dir" --num_iter=2 --results_dir=run
  refused 71 "cannot make the directory '/proc/self/x': No such file or directory; give another --results_dir" \
    --num_iter=2 --results_dir=/proc/self/x
}

@test "an --export_dir that cannot be written is noticed before the first step, and named, 71" {
  refused 71 "cannot make the directory '/proc/self/x': No such file or directory; give another --export_dir" \
    --num_iter=2 --results_dir=run --export_dir=/proc/self/x
  refused 71 "cannot create /proc/self/model.safetensors.partial-" --num_iter=2 --results_dir=run --export_dir=/proc/self
  [[ $messages == *"check that directory or give another --export_dir" ]]
  refused 71 "cannot create /proc/self/state.partial-" --num_iter=2 --results_dir=run --dump_state=/proc/self/state
  [[ $messages == *"another --dump_state" ]]
  refused 71 "cannot create nowhere/plans.partial-" --num_iter=2 --results_dir=run --plan_cache=nowhere/plans
  [[ $messages == *"another --plan_cache" ]]
  mkdir -p final/model.safetensors
  refused 71 "cannot write final/model.safetensors: it is a directory; give another --export_dir" \
    --num_iter=2 --results_dir=run --export_dir=final
  mkdir frozen
  if mount -t tmpfs -o ro tmpfs frozen 2> mount.err; then
    alone --num_iter=2 --results_dir=run --export_dir=frozen
    umount frozen
    [ "$status" -eq 71 ]
    [[ $messages == *"cannot create frozen/model.safetensors.partial-"*": Read-only file system; "*"another --export_dir" ]]
  fi
  [ ! -e run/checkpoints ]
}

@test "what killed runs have left of an export goes" {
  mkdir final
  leftover=final/model.safetensors.partial-$(uname -n)-1073741824 # larger than any process number
  echo half > "$leftover"
  echo half > final/model.safetensors.partial-1073741824
  trained --num_iter=2 --export_dir=final
  [ "$(ls -A final)" = model.safetensors ]
}

@test "a log file outside --results_dir, and a seed that does not fit, 64" {
  refused 64 "--log_filename: needs the name of a file in --results_dir, not '../../x'" --num_iter=2 \
    --results_dir=run --log_filename=../../x
  refused 64 "--seed: needs a number of at most 18446744073709551615, not '18446744073709551616'" --num_iter=2 \
    --results_dir=run --seed=18446744073709551616
  [ ! -e run ]
}

# as_another COMMAND...: as a user who is neither this one nor root.
as_another() {
  setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
}

# cannot COMMAND...: what another user must fail to do.
cannot() {
  if as_another "$@" 2> /dev/null; then
    echo "another user could: $*"
    return 1
  fi
}

@test "another user can neither read nor plant anything in the run directory" {
  [ "$(id -u)" -eq 0 ] || skip "only root can become another user"
  # The directories above are for all, as /tmp is.
  local above=$BATS_TEST_TMPDIR
  while [ "$above" != / ]; do
    chmod o+rx "$above"
    above=$(dirname "$above")
  done
  chmod 1777 tmp
  umask 0
  launcher=local start_training 2 --mode=train --num_iter=1000000 --results_dir=run
  wait_for 20 grep -q iteration out
  directory=$(echo "$BATS_TEST_TMPDIR"/tmp/ddlrun.*)
  [ -d "$directory" ]
  as_another test -x "$BATS_TEST_TMPDIR/tmp"
  local found=0 file
  while IFS= read -r file; do
    found=$((found + 1))
    cannot head -c 1 "$file"
    cannot test -e "$file"
  done < <(find "$directory" -type f)
  [ "$found" -gt 0 ]
  cannot ls "$directory"
  cannot touch "$directory/planted"
  cannot ln -s /etc/passwd "$directory/RANKFILE"
  cannot mkdir "$directory/ranks-1.shm"
  cannot mv "$directory" "$BATS_TEST_TMPDIR/tmp/taken"
  # Nor elsewhere: what the ranks have open in shared places is theirs alone.
  for pid in $(ranks_here); do
    while IFS= read -r file; do
      cannot head -c 1 "$file"
    done < <(find "/proc/$pid/fd" -lname '/dev/shm/*' -printf '%l\n' -o -lname '/tmp/ddl*' -printf '%l\n')
  done
  kill -TERM "$job"
  expect=75 end_of_training
}
