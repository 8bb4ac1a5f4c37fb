# SPDX-License-Identifier: Apache-2.0
# Sourced in each task of srun, as the tutorials do: their variables from Slurm's. Not needed for welkin, which reads Slurm's own; for
# programs beside it, and for scripts that expect these names. MASTER_ADDR comes from the batch script.
export RANK=$SLURM_PROCID
export LOCAL_RANK=$SLURM_LOCALID
export WORLD_SIZE=$SLURM_NTASKS
export MASTER_PORT=${MASTER_PORT:-29500}
