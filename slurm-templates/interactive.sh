#!/bin/bash -l
# A shell in which ddlrun sees the nodes and GPUs of a job. Leave it (exit) to give them back.
#   ./interactive.sh                         the shell stays on this machine; ddlrun starts ranks on the job's nodes
#   ./interactive.sh on-node                 the shell runs on the first node of the job
#   ./interactive.sh [on-node] -N2 -t02:00:00     more options for salloc; they win over those below
# Then, as often as you like:  bede-ddlrun python train.py

# Change these. Bede: --account=bdXXXYY --partition=gpu as well.
options=(-N1 --gres=gpu:4 --time=01:00:00)

# Where `module avail ddlrun` finds nothing, tell it where ddlrun was installed: module use PREFIX/share/modulefiles
module load ddlrun || exit

if [ "${1:-}" = on-node ]; then
  # No login shell, so that it keeps what was loaded above; --overlap leaves the job's GPUs and cores to what is started in it.
  exec salloc "${options[@]}" "${@:2}" srun -N1 -n1 --overlap --pty "${SHELL:-/bin/bash}"
fi
exec salloc "${options[@]}" "$@" "${SHELL:-/bin/bash}"
