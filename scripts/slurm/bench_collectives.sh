#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Times every collective over the axes of a mesh, on all ranks of a job: the links of a cluster. All arguments go to `welkin bench
# collectives`. Resources are given to sbatch, which win over the lines below:
#   sbatch --nodes=2 --account=ACCOUNT scripts/slurm/bench_collectives.sh --tensor_parallel 4
# The text is in the job's output, the calibration in collectives-JOB.json (for `welkin bench scaling --calibration`).
# Environment: WELKIN (the program; default `welkin`), IMAGE (a container for shifter), MASTER_ADDR, MASTER_PORT, WELKIN_JOB_SECRET (what
# the ranks know each other by; default: random for each job), NCCL_DEBUG=INFO (NCCL then says which links it takes).
#SBATCH --job-name=welkin-collectives
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=32
#SBATCH --time=00:15:00
#SBATCH --output=%x-%j.out
set -euo pipefail
export MASTER_ADDR=${MASTER_ADDR:-$(hostname)}
export MASTER_PORT=${MASTER_PORT:-29500}
export WELKIN_JOB_SECRET=${WELKIN_JOB_SECRET:-$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')}
container=()
[ -z "${IMAGE:-}" ] || container=(shifter "--image=$IMAGE")
json=collectives-${SLURM_JOB_ID:-0}.json
srun --kill-on-bad-exit=1 --cpu-bind=none "${container[@]}" "${WELKIN:-welkin}" --bind "${WELKIN_BIND:-auto}" bench collectives \
  --json "$json" "$@"
