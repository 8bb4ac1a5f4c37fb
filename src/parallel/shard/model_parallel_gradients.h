// SPDX-License-Identifier: Apache-2.0
// Gradient reductions over tp and cp after the backward pass, the gradient norm over sharded parameters, and the check that
// replicas are equal. All functions take the parameter table. Data parallelism has reduced its gradients before.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "parallel/comm/mesh_groups.h"
#include "parallel/shard/param_table.h"

namespace welkin::parallel {

// Sums partial gradients over the members that hold them (ParamRow::partial_over) and averages gradients that are complete
// on every member, so that replicas stay equal by construction; one all-reduce per kind. In place. Every rank of tp x cp calls
// it. `axes`: those of tp and cp over which sums are still missing.
void reduce_model_parallel_gradients(const ParamTable& table, const MeshGroups& groups, AxisSet axes = Axis::Tp | Axis::Cp);

// Sums the gradients of tied weights over the pipeline ranks that have copies (ParamRow::holders), in place. One message
// for each, since they are few and large. Every rank of the pipeline calls it.
void sum_tied_gradients(const ParamTable& table);

// Sums every gradient over a group of replicas in one message, without overlap; a reference for the Reducer.
void sum_gradients(const ParamTable& table, const Group& group);

// () float32, or float64 for float64: the squared 2-norm of all parameters' `values` (one per row; undefined ones are left
// out), each element of the model counted once. Equal on every rank of tp x cp. In a pipeline it covers this rank's stages,
// without tied weights that another rank counts.
// `shards`: members whose values are pieces of one whole.
at::Tensor global_square_norm(const ParamTable& table, const std::vector<at::Tensor>& values, const MeshGroups& groups,
                              const Group& shards = Group());

// (k, n) -> the same shape: k numbers for each row of the table with its own gradient (`rows`: their indices in the
// table), summed over the ranks of tp if tp splits the parameter, and over `shards`, which have pieces of every one of them.
// Every rank of both calls it.
at::Tensor sum_over_parts(const ParamTable& table, const std::vector<size_t>& rows, const at::Tensor& numbers,
                          const MeshGroups& groups, const Group& shards);

// The same, in place, for one contiguous tensor per row, all of one type.
void add_over_parts(const ParamTable& table, const std::vector<size_t>& rows, const std::vector<at::Tensor>& values,
                    const MeshGroups& groups, const Group& shards);

struct ReplicaDifference {
  std::string parameter;  // the first in the order of the table
  std::vector<int64_t>
      ranks;  // of the world, whose values differ from those of most ranks that hold it; all holders without a majority
  int64_t num_replicas = 0;  // number of ranks with this parameter
  bool has_majority = false;
};

// One hash per row of a table; 0 if no other rank should hold the same values.
using ReplicaHashes = std::vector<int64_t>;

// Hash of the values in logical order: equal values on devices of one kind have equal hashes. Any thread.
int64_t hash_of_values(const at::Tensor& values);

// Ascending indices of rows whose values other ranks should hold as well.
std::vector<size_t> rows_with_replicas(const ParamTable& table, const MeshGroups& groups);

// Hashes of this rank's current values.
ReplicaHashes replica_hashes(const ParamTable& table, const MeshGroups& groups);

// Compares the hashes over the ranks that should hold equal values. Nothing if all agree. Every rank of the mesh calls it and
// gets an answer about its own groups. One small exchange per kind of placement, and one per parameter with copies on several
// stages of a pipeline.
std::optional<ReplicaDifference> find_replica_difference(const ParamTable& table, const MeshGroups& groups,
                                                         const ReplicaHashes& own_hashes);

// All ranks are present, but one of them has wrong values.
struct ReplicasDiffer : CommError {
  using CommError::CommError;
};

// Throws ReplicasDiffer with parameter and ranks on every rank if a replica differs anywhere. `when`: "at the start". `own`:
// hashes taken at that time; without them the current ones.
void check_replicas(const ParamTable& table, const MeshGroups& groups, const std::string& when);
void check_replicas(const ParamTable& table, const MeshGroups& groups, const std::string& when, const ReplicaHashes& own);

}  // namespace welkin::parallel
