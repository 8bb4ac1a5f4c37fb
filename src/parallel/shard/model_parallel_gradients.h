// SPDX-License-Identifier: Apache-2.0
// Gradient reductions over tp and cp after the backward pass, the gradient norm over sharded parameters, and the check that
// replicas are equal. All functions work on the parameter table. Data parallelism reduces before, by itself.
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

// Sums the gradients of parameters whose members hold parts of them (ParamRow::partial_over) and averages those that are complete
// on every member, so that replicas stay equal by construction; one all-reduce per kind. In place. Every rank of tp x cp calls
// it. `axes`: of tp and cp, those along which the sums are still owed.
void reduce_model_parallel_gradients(const ParamTable& table, const MeshGroups& groups, AxisSet axes = Axis::Tp | Axis::Cp);

// Sums the gradients of tied weights over the ranks of a pipeline that have copies of them (ParamRow::holders), in place, one
// message for each: they are few and large. Every rank of the pipeline calls it.
void sum_tied_gradients(const ParamTable& table);

// Sums every gradient over a group of replicas in one message, without overlap: what the Reducer is compared with.
void sum_gradients(const ParamTable& table, const Group& group);

// () float32, or float64 of float64: the square of the 2-norm of all parameters' `values` (one per row, undefined ones are left
// out), each element of the model counted once: the same on every rank of tp x cp. Of a pipeline that of this rank's stages, tied
// weights left out where another rank counts them.
// `shards`: members whose values are those of the pieces of one whole.
at::Tensor global_square_norm(const ParamTable& table, const std::vector<at::Tensor>& values, const MeshGroups& groups,
                              const Group& shards = Group());

// (k, n) -> the same shape: k numbers for each row of the table that has a gradient of its own (`rows`: their places in the
// table), summed over the ranks of tp where tp splits the parameter, and over `shards`, which have pieces of every one of them.
// Every rank of both calls it.
at::Tensor sum_over_parts(const ParamTable& table, const std::vector<size_t>& rows, const at::Tensor& numbers,
                          const MeshGroups& groups, const Group& shards);

// The same, in place, of one contiguous tensor for each row, all of one type.
void add_over_parts(const ParamTable& table, const std::vector<size_t>& rows, const std::vector<at::Tensor>& values,
                    const MeshGroups& groups, const Group& shards);

struct ReplicaDifference {
  std::string parameter;  // the first in the order of the table
  std::vector<int64_t>
      ranks;  // of the world, whose values are not those of most ranks that hold it; all of these without a majority
  int64_t num_replicas = 0;  // ranks that hold it
  bool has_majority = false;
};

// A hash of each row of a table; 0 where no other rank should hold the same values.
using ReplicaHashes = std::vector<int64_t>;

// Of the values in logical order: the same of equal values on devices of one kind. Any thread.
int64_t hash_of_values(const at::Tensor& values);

// Ascending: the rows whose values other ranks should hold as well.
std::vector<size_t> rows_with_replicas(const ParamTable& table, const MeshGroups& groups);

// Of the values that this rank has now.
ReplicaHashes replica_hashes(const ParamTable& table, const MeshGroups& groups);

// Compares the hashes over the ranks that should hold the same: nothing when all agree. Every rank of the mesh calls it and gets
// an answer about its own groups; one small exchange per kind of placement, and per parameter that stages of a pipeline have
// copies of.
std::optional<ReplicaDifference> find_replica_difference(const ParamTable& table, const MeshGroups& groups,
                                                         const ReplicaHashes& own_hashes);

// The ranks are all there, and one of them has wrong values.
struct ReplicasDiffer : CommError {
  using CommError::CommError;
};

// Throws ReplicasDiffer naming parameter and ranks on every rank when a replica differs anywhere. `when`: "at the start". `own`:
// hashes that were taken then; without them those of now.
void check_replicas(const ParamTable& table, const MeshGroups& groups, const std::string& when);
void check_replicas(const ParamTable& table, const MeshGroups& groups, const std::string& when, const ReplicaHashes& own);

}  // namespace welkin::parallel
