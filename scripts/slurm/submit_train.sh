#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The counterpart of the tutorials' submit_*.sh: all arguments go to `welkin train`. Resources are given to sbatch, which win over the
# lines below:
#   sbatch --nodes=2 --account=ACCOUNT --reservation=NAME scripts/slurm/submit_train.sh --yaml_config config/ViT.yaml --config mp
# Environment: WELKIN (the program; default `welkin`), IMAGE (a container for shifter), DATA_DIR and LOGS_DIR (what /data and /logs stand
# for), ENABLE_PROFILING=1 with PROFILE_OUTPUT (nsys), BENCHY_OUTPUT (with --enable_benchy: name of its JSON; benchy_output),
# NVIDIA_TF32_OVERRIDE (0: no TF32), MASTER_PORT, WELKIN_JOB_SECRET (what the ranks know each other by; default: random for each job).
#SBATCH --job-name=welkin
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=32
#SBATCH --time=01:00:00
#SBATCH --output=%x-%j.out
set -euo pipefail
welkin=${WELKIN:-welkin}
export MASTER_ADDR=${MASTER_ADDR:-$(hostname)}
export MASTER_PORT=${MASTER_PORT:-29500}
export WELKIN_JOB_SECRET=${WELKIN_JOB_SECRET:-$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')}
export HDF5_USE_FILE_LOCKING=${HDF5_USE_FILE_LOCKING:-FALSE}
[ -z "${NVIDIA_TF32_OVERRIDE:-}" ] || export NVIDIA_TF32_OVERRIDE

# As in the tutorials, a file of this job's own tells benchy the name; in this folder, which all nodes see.
if [[ " $* " == *" --enable_benchy "* ]]; then
  benchy_file=benchy-run-${SLURM_JOB_ID:-0}.yaml
  benchy_json=${BENCHY_OUTPUT:-benchy_output}.json
  if [ -n "${BENCHY_CONFIG_FILE:-}" ]; then
    sed "s|\(output_filename:\)[^,}]*|\1 '$benchy_json'|" "$BENCHY_CONFIG_FILE" > "$benchy_file"
  else
    echo "global: {report_freq: 10, exit_after_tests: True, profiler_mode: single, output_filename: '$benchy_json'," \
      "output_dir: './', use_distributed_barrier: False}" > "$benchy_file"
  fi
  export BENCHY_CONFIG_FILE=$benchy_file
fi

container=()
[ -z "${IMAGE:-}" ] || container=(shifter "--image=$IMAGE")
profiler=()
if [ "${ENABLE_PROFILING:-0}" = 1 ]; then
  profiler=(nsys profile --trace=cuda,cublas,nvtx --kill none -c cudaProfilerApi -f true -o "${PROFILE_OUTPUT:-profile}")
fi
folders=()
[ -z "${DATA_DIR:-}" ] || folders+=(--data_root "$DATA_DIR")
[ -z "${LOGS_DIR:-}" ] || folders+=(--log_root "$LOGS_DIR")

# The signal reaches welkin two minutes before the time is over if sbatch is given --signal=USR1@120: it then saves a checkpoint, and with
# --requeue (of sbatch and of train) goes on in a next job.
exec srun --kill-on-bad-exit=1 --cpu-bind=none "${container[@]}" "${profiler[@]}" "$welkin" --bind "${WELKIN_BIND:-auto}" train \
  "${folders[@]}" "$@"
