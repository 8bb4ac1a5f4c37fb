// SPDX-License-Identifier: Apache-2.0
#include "train/interchange/difference.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/linalg_vector_norm.h>

#include <algorithm>
#include <cstring>

#include "core/printable.h"
#include "core/text.h"
#include "observe/log/table.h"
#include "train/checkpoint/format/stored_tensor.h"

namespace welkin::train::interchange {
namespace {

std::string extents(const std::vector<int64_t>& shape) { return shape.empty() ? "()" : join(shape, "x"); }

bool equal_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.nbytes() == b.nbytes() && (a.nbytes() == 0 || std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0);
}

TensorDifference compared(const StateTensor& first, const StateTensor& second) {
  TensorDifference row{.name = first.name, .verdict = TensorMatch::EqualBits, .detail = {}, .largest = 0, .relative = 0};
  if (first.shape != second.shape) {
    row.verdict = TensorMatch::OtherShape;
    row.detail = cat(extents(first.shape), " / ", extents(second.shape));
    return row;
  }
  const at::Tensor a = first.read(), b = second.read();
  if (first.dtype == second.dtype && equal_bits(a, b)) return row;
  row.verdict = TensorMatch::Differs;
  if (first.dtype != second.dtype) row.detail = cat(dtype_name(first.dtype), " / ", dtype_name(second.dtype));
  if (a.numel() == 0) return row;
  const at::Tensor wide = a.to(at::kDouble), difference = wide - b.to(at::kDouble);
  row.largest = difference.abs().max().item<double>();
  const double norm = at::linalg_vector_norm(wide).item<double>();
  row.relative = at::linalg_vector_norm(difference).item<double>() / (norm > 0 ? norm : 1);
  return row;
}

std::string verdict_text(const TensorDifference& row) {
  switch (row.verdict) {
    case TensorMatch::EqualBits:
      return "equal bits";
    case TensorMatch::Differs:
      return row.detail.empty() ? "differs" : cat("differs, ", row.detail);
    case TensorMatch::OtherShape:
      return cat("other shape, ", row.detail);
    case TensorMatch::OnlyFirst:
      return "only in the first";
    case TensorMatch::OnlySecond:
      return "only in the second";
  }
  return {};
}

std::string in_units(uint64_t bytes) { return bytes < 10'000'000 ? cat(bytes, " bytes") : cat(bytes / 1'000'000, " MB"); }

}  // namespace

std::vector<std::string> groups_of_one(const State& first, const State& second) {
  std::vector<std::string> groups;
  for (const char* group : {"optimizer", "state", "picture"}) {
    if (first.has_group(group) != second.has_group(group)) groups.emplace_back(group);
  }
  return groups;
}

std::vector<TensorDifference> compare(const State& first, const State& second) {
  const auto left_out = groups_of_one(first, second);
  const auto is_left_out = [&](const StateTensor& tensor) { return std::ranges::find(left_out, tensor.group) != left_out.end(); };
  std::vector<TensorDifference> rows;
  for (const StateTensor& tensor : first.tensors) {
    if (is_left_out(tensor)) continue;
    const StateTensor* other = second.find(tensor.name);
    if (other == nullptr) {
      rows.push_back({.name = tensor.name, .verdict = TensorMatch::OnlyFirst, .detail = {}});
    } else {
      rows.push_back(compared(tensor, *other));
    }
  }
  for (const StateTensor& tensor : second.tensors) {
    if (!is_left_out(tensor) && first.find(tensor.name) == nullptr)
      rows.push_back({.name = tensor.name, .verdict = TensorMatch::OnlySecond, .detail = {}});
  }
  return rows;
}

bool is_equal(const std::vector<TensorDifference>& rows) {
  return std::ranges::all_of(rows, [](const TensorDifference& row) { return row.verdict == TensorMatch::EqualBits; });
}

std::string difference_table(const std::vector<TensorDifference>& rows, bool all) {
  using observe::Align;
  observe::Table table({{"tensor"}, {"max abs", Align::Right}, {"rel l2", Align::Right}, {"verdict"}});
  int64_t equal = 0;
  for (const TensorDifference& row : rows) {
    const bool same = row.verdict == TensorMatch::EqualBits;
    equal += same ? 1 : 0;
    if (same && !all) continue;
    const bool numbers = row.verdict == TensorMatch::Differs;
    table.add_row({printable(row.name), numbers ? cat(row.largest) : "", numbers ? cat(row.relative) : "", verdict_text(row)});
  }
  const auto different = static_cast<int64_t>(rows.size()) - equal;
  const bool shown = all ? !rows.empty() : different > 0;
  return cat(shown ? table.text() : "", rows.size(), " tensors: ", equal, " with equal bits, ", different, " different\n");
}

std::string listing(const State& state) {
  using observe::Align;
  observe::Table table({{"tensor"}, {"group"}, {"dtype"}, {"shape", Align::Right}, {"bytes", Align::Right}});
  uint64_t bytes = 0;
  for (const StateTensor& tensor : state.tensors) {
    table.add_row({printable(tensor.name), printable(tensor.group), std::string(dtype_name(tensor.dtype)), extents(tensor.shape),
                   cat(tensor.num_bytes())});
    bytes += tensor.num_bytes();
  }
  std::string text = cat("path    ", state.path.string(), "\nformat  ", state.format, "\n");
  for (const auto& [name, value] : state.facts) text += cat(printable(name), ": ", printable(value), "\n");
  if (!state.optimizer.kind.empty()) text += cat("optimizer: ", printable(state.optimizer.kind), "\n");
  text += cat("\n", table.text(), state.tensors.size(), " tensors, ", in_units(bytes), "\n");
  for (const std::string& note : state.notes) text += cat("note: ", printable_lines(note), "\n");
  if (!state.config.empty()) text += cat("\nconfiguration:\n", printable_lines(state.config));
  return text;
}

}  // namespace welkin::train::interchange
