#!/usr/bin/env bats
# The program ddl-rankfile: what it prints, where it complains, how it exits.

bats_require_minimum_version 1.5.0

setup() {
  ddl_rankfile="$DDLRUN_BUILD/bin/ddl-rankfile"
  cd "$BATS_TEST_TMPDIR" || exit 1
}

# Runs the program: status, standard output in $output, the complaint in $complaint.
run_program() {
  run --separate-stderr "$ddl_rankfile" "$@"
  complaint=$stderr
}

@test "expand prints one host per line" {
  run_program expand 'gpu[025-027,030]'
  [ "$status" -eq 0 ]
  [ "$output" = $'gpu025\ngpu026\ngpu027\ngpu030' ]
  [ -z "$complaint" ]
}

@test "the text is the argument, a file behind --file, the standard input -" {
  echo 'n[1-2]' > nodes
  for source in 'n[1-2]' '--file nodes' '-f nodes' - '--file -'; do
    run_program expand $source < nodes
    [ "$output" = $'n1\nn2' ] || { echo "$source: $output $complaint"; false; }
  done
  run_program expand ''
  [ "$status" -eq 0 ]
  [ -z "$output$complaint" ]
}

@test "a text in brackets is one text" {
  run_program expand '[08-10,2]'
  [ "$output" = $'08\n09\n10\n2' ]
}

@test "a file's name given as the text is refused with the option to write" {
  echo 'rank 0=a slot=0' > RANKFILE
  run_program check rankfile RANKFILE
  [ "$status" -eq 65 ]
  [ "$complaint" = "TEXT:1:1: expected 'rank', as in rank 0=host1 slot=0:0-9, not 'R'; to read the file of this name: --file RANKFILE" ]
  run_program check rankfile RANKFILES
  [[ $complaint != *--file* ]]
}

@test "a text that starts with a dash, as DDL_OPTIONS does, is no option" {
  run_program check ddl-options '-dbg_level 1 -mode p:4x2x1x1 '
  [ "$output" = 'TEXT: ddl-options ok, 8 ranks' ]
  run_program check ddl-options -- -mode
  [ "$complaint" = 'TEXT:1:6: expected a mode, one of b n r m c p, as in -mode p:4x2x1x1, not the end of the text' ]
}

@test "expand --cpus prints CPU numbers" {
  run_program expand --cpus '0-1,8'
  [ "$output" = $'0\n1\n8' ]
}

@test "compress takes names on any number of lines and skips comments" {
  printf 'n1\nn2 n3 # spare\n\nlogin1\n' > names
  run_program compress --file names
  [ "$status" -eq 0 ]
  [ "$output" = 'n[1-3],login1' ]
}

@test "compress takes names as words, or with commas between, as scontrol show hostlist does" {
  for names in 'n1 n2 n3 login1' 'n1,n2,n3,login1' 'n1, n2 n3,login1'; do
    run_program compress "$names"
    [ "$output" = 'n[1-3],login1' ]
    run_program compress $names
    [ "$output" = 'n[1-3],login1' ]
  done
  run_program compress 'n1;n2'
  [ "$status" -eq 65 ]
  [ "$complaint" = "TEXT:1:3: expected a blank, a comma or the end of the line, as in gpu025 gpu026, not ';'" ]
}

@test "compress --cpus prints a CPU list" {
  run_program compress --cpus '3 2 1 8'
  [ "$output" = '1-3,8' ]
}

@test "compress undoes expand" {
  run_program expand 'row[0,1]_rack[2-3]_blade[4,5],n[08-11]'
  printf '%s\n' "$output" > names
  run_program compress --file names
  [ "$output" = 'row0_rack2_blade[4-5],row1_rack2_blade[4-5],row0_rack3_blade[4-5],row1_rack3_blade[4-5],n[08-11]' ]
}

@test "check says what is in each format" {
  run_program check rankfile $'rank 0=a slot=0:0-9\nrank 1=a slot=1:0-9'
  [ "$output" = 'TEXT: rankfile ok, 2 ranks on 1 host' ]
  run_program check hostlist 'n[1-4]'
  [ "$output" = 'TEXT: hostlist ok, 4 hosts' ]
  run_program check cpu-list '0'
  [ "$output" = 'TEXT: cpu-list ok, 1 CPU' ]
  run_program check hostfile $'a slots=4\nb'
  [ "$output" = 'TEXT: hostfile ok, 2 hosts' ]
  run_program check ddl-host-list 'g28n14:0,2;g28n15:1,3'
  [ "$output" = 'TEXT: ddl-host-list ok, 4 ranks on 2 hosts' ]
  run_program check ddl-options '-mode p:4x2x1x1 '
  [ "$output" = 'TEXT: ddl-options ok, 8 ranks' ]
}

@test "check names file, line and column of what is wrong" {
  printf 'rank 0=a slot=0:0-9\nrank 0=b slot=0:0-9\n' > RANKFILE
  run_program check rankfile --file RANKFILE
  [ "$status" -eq 65 ]
  [ -z "$output" ]
  [ "$complaint" = 'RANKFILE:2:1: rank 0 is already given at 1:1' ]
  run_program check rankfile - < RANKFILE
  [ "$complaint" = 'stdin:2:1: rank 0 is already given at 1:1' ]
}

@test "convert writes ddlrun's DDL_HOST_LIST from a rankfile" {
  for rank in 0 1 2 3; do
    echo "rank $rank=gpu025.bede.dur.ac.uk slot=$((rank / 2)):$((rank % 2 * 8))-$((rank % 2 * 8 + 7))"
  done > RANKFILE
  run_program convert --from rankfile --to ddl-host-list -f RANKFILE
  [ "$output" = 'gpu025.bede.dur.ac.uk:0,1,2,3' ]
  run_program convert --from rankfile --to hostfile -f RANKFILE
  [ "$output" = 'gpu025.bede.dur.ac.uk slots=4' ]
  run_program convert --from rankfile --to rankfile -f RANKFILE
  [ "${lines[0]}" = 'rank 0=gpu025.bede.dur.ac.uk     slot=0:0-7' ]
  [ "${lines[3]}" = 'rank 3=gpu025.bede.dur.ac.uk     slot=1:8-15' ]
}

@test "convert counts +n1 in the hosts that are given" {
  run_program convert --from rankfile --to hostlist --hosts 'n[1-2]' \
    $'rank 0=+n1 slot=0:*\nrank 1=+n0 slot=0:*'
  [ "$status" -eq 0 ]
  [ "$output" = 'n[2,1]' ]
}

@test "convert takes each name of a hostlist for one rank" {
  run_program convert --from hostlist --to ddl-host-list 'n1,n1,n[2-3]'
  [ "$output" = 'n1:0,1;n2:2;n3:3' ]
}

@test "convert refuses what the input does not say" {
  run_program convert --from hostfile --to rankfile 'a slots=2'
  [ "$status" -eq 65 ]
  [ "$complaint" = 'TEXT: rank 0 on a has no cores, which a rankfile must name' ]
}

@test "convert refuses a host spelled in two ways" {
  run_program convert --from hostlist --to hostfile 'gpu025,gpu025.x.org'
  [ "$status" -eq 65 ]
  [ "$complaint" = 'TEXT: rank 1: gpu025.x.org and gpu025 are one host spelled in two ways; use one' ]
}

@test "a file that cannot be read is bad input" {
  run_program check hostfile --file nowhere
  [ "$status" -eq 65 ]
  [ "$complaint" = 'nowhere: cannot be read: No such file or directory' ]
  run_program check hostfile --file .
  [ "$status" -eq 65 ]
  [ "$complaint" = '.: cannot be read: Is a directory' ]
}

@test "output that cannot be written is an error of the operating system" {
  [ -w /dev/full ] || skip "no /dev/full"
  for arguments in 'expand n[1-3]' --help 'expand --help' --version; do
    run bash -c '"$1" $2 > /dev/full' _ "$ddl_rankfile" "$arguments"
    [ "$status" -eq 71 ] || { echo "'$arguments' exits $status"; false; }
    [ "$output" = 'ddl-rankfile: cannot write the output: No space left on device' ]
  done
}

@test "an endless input is refused at the limit" {
  run -65 bash -c 'yes n1, | tr -d "\n" | "$1" expand -' _ "$ddl_rankfile"
  [[ "$output" == *"more than the limit of 33554432"* ]]
}

@test "wrong usage exits 64" {
  for arguments in '' 'expand' 'check' 'check rankfile' 'check nonsense -' 'frobnicate' \
    'convert --from hostlist -' 'convert --from hostlist --to ddl-options -' \
    'expand n1 --file nodes' 'expand n1 n2' 'expand --unknown'; do
    run_program $arguments < /dev/null
    [ "$status" -eq 64 ] || { echo "'$arguments' exits $status"; false; }
    [ -n "$complaint" ]
  done
}

@test "every command explains itself and the exit codes" {
  for command in '' check convert expand compress; do
    run_program $command --help
    [ "$status" -eq 0 ]
    [[ "$output" == *"Exit codes: 0 done; 64 wrong usage; 65 input"* ]]
    for format in hostlist cpu-list rankfile hostfile ddl-host-list ddl-options; do
      [[ "$output" == *"  $format "* ]]
    done
  done
}
