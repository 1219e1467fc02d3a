#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What Tab makes of a line in an interactive bash: without the package bash-completion, and with the one that is installed.

bats_require_minimum_version 1.5.0

setup() {
  completions=$DDLRUN_BUILD/manual/completions
  [ -e "$completions/ddlrun" ] || skip "a build with sanitizers, or a cross build without an emulator, makes none"
  command -v python3 > /dev/null || skip "python3, which types on the terminal, is not installed"
  cd "$BATS_TEST_TMPDIR" || exit 1
  cat "$completions"/{ddlrun,bede-mpirun,ddltraind,ddlctl,ddldata,ddlbench,ddl-rankfile} > plain
  package=/usr/share/bash-completion/bash_completion
  mkdir -p bin directory/inner 'directory with blank'
  touch directory/one.yaml 'two words.yaml' bin/quizzical-tool
  chmod +x bin/quizzical-tool
  export PATH=$PWD/bin:$PATH
}

# Tab behind LINE; what comes of it in $output. With the settings in the file $shell.
press_tab() { run "$BATS_TEST_DIRNAME/press_tab.py" "${shell:-plain}" "$1"; }

# becomes LINE LINE-AFTER
becomes() {
  press_tab "$1"
  [ "$output" = "$2" ] || { echo "'$1' becomes '$output', not '$2'"; return 1; }
}

# offers LINE CANDIDATE...
offers() {
  local line=$1
  shift
  press_tab "$line"
  [ "$output" = "$(printf '%s\n' "$@")" ] || { echo "'$line' offers '$output', not '$*'"; return 1; }
}

@test "shellcheck has nothing to say" {
  command -v shellcheck > /dev/null || skip "shellcheck is not installed"
  shellcheck -s bash "$completions"/*
}

@test "options: a value is asked for by '=', one dash is enough for ddlrun" {
  becomes 'ddlrun --lau' 'ddlrun --launcher='
  becomes 'bede-ddlrun -lau' 'bede-ddlrun -launcher='
  becomes 'ddlrun --dry' 'ddlrun --dry-run '
  offers 'ddlrun --check' --check-only --check=
  becomes 'ddltraind --learn' 'ddltraind --learn'
  becomes 'ddltraind --nouse_d' 'ddltraind --nouse_dali '
}

@test "choices: behind '=' and as the next word" {
  offers 'ddlrun --check=' auto full off
  becomes 'ddlrun --check=f' 'ddlrun --check=full '
  becomes 'ddlrun --check f' 'ddlrun --check full '
  becomes 'ddlrun -n 2 -check=f' 'ddlrun -n 2 -check=full '
  becomes 'ddlrun --dry-run=j' 'ddlrun --dry-run=json '
  becomes 'ddltraind --mode=pre' 'ddltraind --mode=predict '
  becomes 'ddltraind --batch_size 8 --data_format NH' 'ddltraind --batch_size 8 --data_format NHWC '
  offers 'bede-mpirun --bede-par 1ppg' 1ppg 1ppg:1tpc 1ppg:1tpt 1ppg:none
  becomes 'bede-mpirun --bede-par 1ppg:1tpc' 'bede-mpirun --bede-par 1ppg:1tpc '
  becomes 'bede-mpirun --bede-par=1ppn:n' 'bede-mpirun --bede-par=1ppn:none '
}

@test "words are cut elsewhere where COMP_WORDBREAKS says so" {
  { cat plain; echo 'COMP_WORDBREAKS=${COMP_WORDBREAKS//[=:]/}'; } > uncut
  shell=uncut
  becomes 'ddlrun --check=f' 'ddlrun --check=full '
  becomes 'bede-mpirun --bede-par=1ppn:n' 'bede-mpirun --bede-par=1ppn:none '
}

@test "paths: files and directories as the shell completes them" {
  becomes 'ddlrun --site directory/o' 'ddlrun --site directory/one.yaml '
  becomes 'ddlrun --site=two' 'ddlrun --site=two\ words.yaml '
  becomes 'ddltraind --results_dir=directory/' 'ddltraind --results_dir=directory/inner/'
  offers 'ddltraind --results_dir dir' directory/ 'directory with blank/'
  becomes 'ddltraind --results_dir directory\ ' 'ddltraind --results_dir directory\ with\ blank/'
  becomes 'ddldata synth directory/' 'ddldata synth directory/inner/'
  becomes 'ddl-rankfile check rankfile --file two' 'ddl-rankfile check rankfile --file two\ words.yaml '
}

@test "commands and their operands" {
  offers 'ddldata ' convert index manifest split stats synth verify
  becomes 'ddldata ver' 'ddldata verify '
  becomes 'ddldata synth --validation_s' 'ddldata synth --validation_shards='
  becomes 'ddldata verify --validation_s' 'ddldata verify --validation_s'
  becomes 'ddldata convert --bad_images=sk' 'ddldata convert --bad_images=skip '
  becomes 'ddldata convert DATA --train directory/o' 'ddldata convert DATA --train directory/one.yaml '
  offers 'ddlbench ' allreduce compare copies extract loader predict repeat report startup step sweep variability
  becomes 'ddlbench sweep --repe' 'ddlbench sweep --repeats='
  becomes 'ddlbench extract --by=t' 'ddlbench extract --by=time '
  becomes 'ddlbench report --bas' 'ddlbench report --baseline='
  becomes 'ddlbench extract directory/' 'ddlbench extract directory/inner/'
  offers 'ddlctl ' attach checkpoint evaluate history pause resume set stacks status stop watch why
  becomes 'ddlctl watch --inter' 'ddlctl watch --interval='
  becomes 'ddlctl pause --no' 'ddlctl pause --no-wait '
  becomes 'ddlctl status directory/' 'ddlctl status directory/inner/'
  becomes 'ddlctl checkpoint l' 'ddlctl checkpoint list '
  offers 'ddlctl checkpoint ' export list verify
  becomes 'ddlctl checkpoint directory/' 'ddlctl checkpoint directory/inner/'
  becomes 'ddlctl checkpoint list directory/' 'ddlctl checkpoint list directory/inner/'
  becomes 'ddlctl checkpoint export directory/inner directory/o' 'ddlctl checkpoint export directory/inner directory/o'
  becomes 'ddlctl checkpoint export directory/inner 5 directory/o' 'ddlctl checkpoint export directory/inner 5 directory/one.yaml '
  becomes 'ddlctl stop --srun=n' 'ddlctl stop --srun=never '
  becomes 'ddl-rankfile check cpu' 'ddl-rankfile check cpu-list '
  becomes 'ddl-rankfile convert --from hostl' 'ddl-rankfile convert --from hostlist '
  becomes 'ddl-rankfile expand dir' 'ddl-rankfile expand dir'
}

# The program's own completion, and in its absence files.
program_is_completed() {
  becomes 'ddlrun -n 2 -check off quizz' 'ddlrun -n 2 -check off quizzical-tool '
  becomes 'ddlrun -n 2 ddltraind --comm=n' 'ddlrun -n 2 ddltraind --comm=nccl '
  becomes 'ddlrun --tcp -- ddltraind --dry' 'ddlrun --tcp -- ddltraind --dry_run '
  becomes 'ddlrun sometool directory/o' 'ddlrun sometool directory/one.yaml '
  becomes 'ddlrun sometool --lau' 'ddlrun sometool --lau'
}

@test "behind the program's name ddlrun is out of the way" {
  program_is_completed
  becomes 'bede-mpirun --bede-par 1ppn quizz' 'bede-mpirun --bede-par 1ppn quizzical-tool '
}

@test "with the package bash-completion, which finds the files by the programs' names" {
  [ -e "$package" ] || skip "bash-completion is not installed"
  mkdir -p share/bash-completion
  cp -r "$completions" share/bash-completion/completions
  printf '%s\n' "export XDG_DATA_DIRS=$PWD/share:/usr/share" ". $package" > packaged
  shell=packaged
  becomes 'ddlrun --check=f' 'ddlrun --check=full '
  becomes 'bede-ddlrun --check=f' 'bede-ddlrun --check=full '
  becomes 'ddl-rankfile check cpu' 'ddl-rankfile check cpu-list '
  program_is_completed
}
