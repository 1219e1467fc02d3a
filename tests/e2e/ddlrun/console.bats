#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The console of many ranks: whose lines are shown, with which tag, and equal ones once; and tools around some ranks.

load common

# ranks N COMMAND... of sh, by each launcher that is here: shows are in $output and $messages.
ranks() {
  local count=$1
  shift
  run_ddlrun --launcher="$launcher" -n "$count" --oversubscribe "${options[@]}" sh -c "$1"
}

@test "--tag-output puts the same in front of each line with every launcher" {
  for launcher in $(launchers); do
    options=(--tag-output)
    # By one write: the other rank's lines may come between two.
    ranks 2 'echo "out $RANK"; echo "err $RANK" >&2; printf "10%%\r20%%\r\n"; printf "end $RANK"'
    [ "$(sort <<< "${output//$'\r'/|}")" = "[0] 10%|[0] 20%|[0] 
[0] end 0
[0] out 0
[1] 10%|[1] 20%|[1] 
[1] end 1
[1] out 1" ]
    grep -xF '[0] err 0' <<< "$messages"
    grep -xF '[1] err 1' <<< "$messages"
    options=("--tag-output=%t %r/%l@%h 100%%> ")
    ranks 2 'echo hello'
    [ "$(grep -cE "^[012][0-9](:[0-5][0-9]){2}\.[0-9]{3} ([01])/\2@$(hostname) 100%> hello$" <<< "$output")" -eq 2 ]
    # A long line has one tag, and comes whole; what is no text comes as it is.
    ranks 1 'head -c 30000 /dev/zero | tr "\0" x; echo; printf "\001\000\377\n"'
    [ "$(sed 's/^.*> //' <<< "$output" | head -1 | wc -c)" -eq 30001 ]
    env "$ddlrun" --launcher="$launcher" -n 1 --tag-output=T sh -c 'printf "\001\000\377\n"' 2> /dev/null | cmp - <(printf 'T\001\000\377\n')
  done
}

@test "--show-ranks shows these alone, and the last lines of another one that fails" {
  for launcher in $(launchers); do
    options=(--show-ranks '0,2-3' --log-dir "logs.$launcher")
    ranks 4 'echo "out $RANK"; echo "err $RANK" >&2'
    [ "$(sort <<< "$output")" = $'out 0\nout 2\nout 3' ]
    [ "$(grep '^err' <<< "$messages" | sort)" = $'err 0\nerr 2\nerr 3' ]
    [ "$(sort "logs.$launcher/rank-00001.log")" = $'err 1\nout 1' ]
    options=(--show-ranks 0)
    expect=3 ranks 2 'echo "err $RANK" >&2; if [ $RANK = 1 ]; then echo "ValueError: no batch" >&2; exit 3; fi; sleep 20'
    [ "$(grep -A2 '^ddlrun: last lines of rank 1:' <<< "$messages" | tail -2)" = $'ddlrun:   | err 1\nddlrun:   | ValueError: no batch' ]
    ! grep -x 'err 1' <<< "$messages" || false
    [[ ${messages##*$'\n'} == *"rank 1 on "*" ended first, with exit code 3, "*" s after the start; its error: ValueError: no batch" ]]
  done
}

@test "--fold-output shows equal lines of several ranks once" {
  for launcher in $(launchers); do
    # They wait for each other: a line is folded with those of a second.
    rm -f here.*
    local meet=': > here.$RANK; until [ -e here.0 ] && [ -e here.1 ] && [ -e here.2 ]; do sleep 0.01; done;'
    options=(--fold-output)
    ranks 3 "$meet"'echo loading; echo "step $RANK"; echo warning >&2'
    [ "$(sort <<< "$output")" = "[0-2] loading
[0] step 0
[1] step 1
[2] step 2" ]
    grep -xF '[0-2] warning' <<< "$messages"
    rm here.*
    options=(--fold-output=numbers --show-ranks '1,2' "--tag-output=%r|")
    # Each writes its lines at once, which on a busy machine takes a moment, not a second.
    ranks 3 'i=0; while [ $i -lt 100 ]; do text="$text${text:+|}step $i of rank $RANK"; i=$((i + 1)); done;'"$meet"' echo "$text" | tr "|" "\n"'
    [ "$(wc -l <<< "$output")" -le 100 ]
    grep -q '^1-2|step .* of rank 1..2$' <<< "$output"
    # A line waits for others a second at most; what a failing rank has printed comes before the words of ddlrun.
    options=(--fold-output)
    expect=3 ranks 2 'if [ $RANK = 1 ]; then sleep 3; echo "last words" >&2; exit 3; fi; echo alone; exec sleep 20'
    [ "$output" = "[0] alone" ]
    [ "$(grep -E 'last words|ended|the job failed' <<< "$messages" | grep -v '^+' | head -1)" = "[1] last words" ]
  done
  "$ddlrun" --launcher=local -n 2 --oversubscribe --fold-output sh -c 'if [ $RANK = 0 ]; then echo alone; fi; sleep 8' > shown 2> /dev/null &
  wait_for 4 grep -xF '[0] alone' shown
  kill "$!"
  wait "$!" || :
}

@test "what all ranks are refused for is said once" {
  for launcher in $(LAUNCHERS=mpirun launchers); do
    options=()
    expect=69 run_ddlrun --launcher="$launcher" -n 3 --oversubscribe no-such-program
    [ "$(grep -c "^ddlrun-rank: .*cannot start 'no-such-program'" <<< "$messages")" -eq 1 ]
    [[ ${messages##*$'\n'} == *"cannot start 'no-such-program': No such file or directory"* ]]
  done
}

@test "--wrap starts some ranks under a tool, also again" {
  for launcher in $(launchers); do
    options=(--wrap '0,2: env "W=a b" R=%r' --wrap 'all: nice -n 3')
    ranks 3 'echo "$RANK ${W-none} ${R-none} $(nice)"'
    niceness=$(($(nice) + 3))
    [ "$(sort <<< "$output")" = "0 a b 0 $niceness"$'\n'"1 none none $niceness"$'\n'"2 a b 2 $niceness" ]
    options=(--max-restarts 1 --wrap '1: env R=%r')
    rm -f failed
    ranks 2 'echo "$RANK ${R-none}"; if [ $RANK = 1 ] && [ ! -e failed ]; then : > failed; exit 3; fi'
    [ "$(grep -c '^1 1$' <<< "$output")" -eq 2 ]
  done
}

@test "lists of ranks and formats that cannot be are refused" {
  says() { # TEXT OPTION...: what ddlrun answers
    expect=${code:-64} run_ddlrun -n 2 --oversubscribe --launcher=local "${@:2}" true
    [[ $messages == *"$1"* ]] || { echo "$messages" && false; }
  }
  says "--show-ranks 2: there are 2 ranks, 0 to 1" --show-ranks 2
  says "option --show-ranks: '1-0' is not a list of ranks, such as 0,3-5, or all" --show-ranks 1-0
  says "option --tag-output: '%q' is not a format of %r, %l, %h, %t and %%: '%q' is none of these" --tag-output=%q
  says "option --fold-output: 'all' is not equal or numbers" --fold-output=all
  says "option --wrap: 'nice' is not RANKS: COMMAND, such as" --wrap nice
  says "--wrap 0-2: there are 2 ranks, 0 to 1" --wrap '0-2: nice'
  code=69 says "--wrap: cannot find 'no-such-tool': load its module, or give its path" --wrap '0: no-such-tool'
  require_mpirun
  expect=64 run_ddlrun -n 2 --oversubscribe --launcher=mpirun --tag-output --mpiarg "--output-filename out" true
  [[ $messages == *"--tag-output and --fold-output need the output of the ranks"*"leave one of them out"* ]]
}
