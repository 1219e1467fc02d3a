#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Launches that a rank starts, and jobs that it submits: what the enclosing launch has set is nobody's wish.

load common

# A rank of the inner launch listens at MASTER_PORT, or connects to who does. In met.GROUP is which group has connected: mpirun may cut
# lines of different ranks into each other.
make_meeting() {
  cat > meet.py <<'END'
import os, socket, sys, time
address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
group = sys.argv[1]
if os.environ["RANK"] == "0":
    time.sleep(0.5)  # a rank of another group that has this port would come first
    with socket.create_server(("", address[1])) as server:
        with server.accept()[0] as peer:
            with open("met." + group, "w") as met:
                met.write(peer.recv(100).decode())
else:
    for _ in range(200):
        try:
            with socket.create_connection(address) as peer:
                peer.sendall(group.encode())
                break
        except ConnectionRefusedError:
            time.sleep(0.05)
END
}

@test "ranks that start a launch each have groups of their own" {
  make_meeting
  for outer in $(launchers); do
    for inner in $(launchers); do
      echo "$outer around $inner"
      rm -f met.*
      run_ddlrun -n 2 --oversubscribe --launcher="$outer" sh -c "exec \"$ddlrun\" -n 2 --oversubscribe --launcher=$inner python3 meet.py \$RANK"
      expect_status 0 "$output$messages"
      [ "$(cat met.0)" = 0 ]
      [ "$(cat met.1)" = 1 ]
    done
  done
}

@test "threads, DDL's variables and the heartbeat of an enclosing launch are its own" {
  for launcher in $(launchers); do
    rm -f inner
    run_ddlrun -n 1 --oversubscribe --launcher="$launcher" -x DDL_OPTIONS='-mode r:7x1x1x1 ' --heartbeat beats/%r sh -c "
      echo \"\${DDLRUN_HEARTBEAT##*/}\"; touch \"\$DDLRUN_HEARTBEAT\"
      exec \"$ddlrun\" -n 1 --oversubscribe --launcher=$launcher --no_ddloptions sh -c 'echo \"\${DDL_OPTIONS-none} \${DDLRUN_HEARTBEAT-none}\" > inner'"
    expect_status 0 "$output$messages"
    [ "$(cat inner)" = "none none" ]
  done
}

@test "what a rank has set itself stays" {
  run_ddlrun -n 1 --launcher=local sh -c "export MASTER_PORT=29512 OMP_NUM_THREADS=3; exec \"$ddlrun\" -n 1 --launcher=local sh -c 'echo \$MASTER_PORT \$OMP_NUM_THREADS'"
  echo "$messages"
  [ "$output" = "29512 3" ]
}

@test "a job that was submitted from within a rank of another one meets on its own nodes" {
  printf 'n1 slots=1\nn2 slots=1\n' > hosts
  left=(RANK=0 WORLD_SIZE=8 DDLRUN_LAUNCHER=srun MASTER_ADDR=node9 DDLRUN_MASTER_ADDR=node9 MASTER_PORT=61234 DDLRUN_MASTER_PORT=61234)
  run env "${left[@]}" "$ddlrun" --hostfile hosts --launcher=mpirun --dry-run true
  echo "$output"
  [[ $output != *node9* && $output != *61234* ]]
  run env MASTER_ADDR=node9 "$ddlrun" --hostfile hosts --launcher=mpirun --dry-run true
  echo "$output"
  [[ $output = *"[WARN DDL-21-8] MASTER_ADDR=node9 is no host of this job"*"tells them n1"* ]]
  run "$ddlrun" --hostfile hosts --launcher=mpirun -x MASTER_ADDR=localhost --dry-run true
  [[ $output = *"[WARN DDL-21-8] MASTER_ADDR=localhost is another machine on each node"* ]]
  run "$ddlrun" --hostfile hosts --launcher=mpirun -x MASTER_ADDR=n2 --dry-run true
  [[ $output != *DDL-21-8* ]]
}

@test "a launch in a worker of torchrun" {
  TORCHELASTIC_RUN_ID=none TORCHELASTIC_USE_AGENT_STORE=True TORCHELASTIC_RESTART_COUNT=0 ROLE_RANK=0 GROUP_WORLD_SIZE=1 \
    MASTER_ADDR=localhost MASTER_PORT=29500 run_ddlrun -n 1 --launcher=local sh -c 'env | grep -E "^(TORCHELASTIC|ROLE_|GROUP_WORLD|MASTER_)" | sort'
  echo "$output"
  [[ $output != *TORCHELASTIC* && $output != *ROLE_* && $output != *29500* && $output = *MASTER_ADDR=127.0.0.1* ]]
}

@test "a launch by mpirun in a rank of mpirun" {
  command -v mpirun > /dev/null || skip "no mpirun"
  run_ddlrun -n 1 --launcher=mpirun sh -c "exec \"$ddlrun\" -n 2 --oversubscribe --launcher=mpirun sh -c 'echo \$RANK of \$OMPI_COMM_WORLD_SIZE'"
  expect_status 0 "$output$messages"
  [ "$(sort <<< "$output")" = "$(printf '0 of 2\n1 of 2')" ]
}
