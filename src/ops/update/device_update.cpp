// SPDX-License-Identifier: Apache-2.0
#include "ops/update/device_update.h"

#include "core/error.h"
#include "ops/device/device_ops.h"

namespace welkin::ops {
namespace {

bool begins_on_16_bytes(const void* array) { return reinterpret_cast<uintptr_t>(array) % alignof(FourFloats) == 0; }

void add_run(UpdateTable& table, const UpdateSpan& run) {
  const int32_t t = table.num_tensors++;
  const int64_t pieces = (run.count + table.piece_length - 1) / table.piece_length;
  WELKIN_CHECK(pieces < INT32_MAX - table.first_piece[t], "the pieces of a launch are counted in 31 bits");
  table.first_piece[t + 1] = table.first_piece[t] + static_cast<int32_t>(pieces);
  table.wide[t] = begins_on_16_bytes(run.value) && begins_on_16_bytes(run.gradient) && begins_on_16_bytes(run.first) &&
                  begins_on_16_bytes(run.second);
  table.count[t] = run.count;
  table.value[t] = run.value;
  table.gradient[t] = run.gradient;
  table.first[t] = run.first;
  table.second[t] = run.second;
}

std::vector<UpdateTable> tables_of(const std::vector<UpdateSpan>& runs, int64_t piece_length) {
  std::vector<UpdateTable> tables;
  for (const UpdateSpan& run : runs) {
    if (run.count == 0) continue;
    if (tables.empty() || tables.back().num_tensors == kUpdateTensors) tables.push_back({.piece_length = piece_length});
    add_run(tables.back(), run);
  }
  return tables;
}

}  // namespace

bool device_update_supports(const at::Tensor& tensor) {
  const DeviceUpdate& table = device_ops().update;
  return table.adam != nullptr && tensor.device().type() == table.device && tensor.scalar_type() == at::kFloat &&
         tensor.is_non_overlapping_and_dense();
}

std::vector<UpdateTable> update_tables(const std::vector<UpdateSpan>& runs) { return tables_of(runs, kUpdatePiece); }

std::vector<UpdateTable> norm_tables(const std::vector<FloatSpan>& runs) {
  std::vector<UpdateSpan> gradients;
  for (const FloatSpan& run : runs) gradients.push_back({.count = run.count, .gradient = run.data});
  return tables_of(gradients, kNormPiece);
}

}  // namespace welkin::ops
