// SPDX-License-Identifier: Apache-2.0
// Comparisons in double.
#include "train/reference/comparison.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/linalg_vector_norm.h>

#include <algorithm>
#include <cmath>

#include "core/text.h"

namespace welkin::train::reference {
namespace {

at::Tensor flat_double(const at::Tensor& x) { return x.detach().to(at::kDouble).flatten(); }
double largest(const at::Tensor& x) { return x.numel() == 0 ? 0.0 : x.abs().max().item<double>(); }
double norm_of(const at::Tensor& x) { return at::linalg_vector_norm(x).item<double>(); }
double ratio(double a, double b) { return a == 0 ? 0.0 : a / b; }  // 0/0 is equality

// A NaN fails every comparison.
void decide(ComparisonRow& row) {
  const bool good = row.max_over_max <= row.tolerance_max_over_max && row.rel_l2 <= row.tolerance_rel_l2;
  row.verdict = good ? Verdict::Pass : Verdict::Fail;
}

// Scales of the whole tensor, of which `wanted` may be samples only.
struct Scales {
  double largest;
  double root_mean_square;
};

ComparisonRow compare_scaled(const std::string& name, const at::Tensor& got, const at::Tensor& wanted, const Scales& scales,
                             const Bounds& bounds) {
  const at::Tensor difference = got.sub(wanted);
  ComparisonRow row;
  row.tensor = name;
  row.max_abs = largest(difference);
  row.max_over_max = ratio(row.max_abs, scales.largest);
  row.rel_l2 =
      ratio(norm_of(difference), scales.root_mean_square * std::sqrt(static_cast<double>(std::max<int64_t>(1, wanted.numel()))));
  row.tolerance_max_over_max = bounds.max_over_max;
  row.tolerance_rel_l2 = bounds.rel_l2;
  decide(row);
  return row;
}

double root_mean_square(const at::Tensor& x) {
  return norm_of(x) / std::sqrt(static_cast<double>(std::max<int64_t>(1, x.numel())));
}

at::Tensor outside_noise(const at::Tensor& indices, const NoiseRange& noise) {
  return noise ? indices.lt(noise->first).logical_or(indices.ge(noise->second)) : indices.ge(0);
}

bool all_noise(const NoiseRange& noise, int64_t size) { return noise && noise->first <= 0 && noise->second >= size; }

const char* const kNoise = "rounding noise in the reference";

ComparisonRow compare_samples(const std::string& name, const at::Tensor& got, const StoredTensors& stored, const Bounds& bounds,
                              const NoiseRange& noise) {
  const at::Tensor all_indices = stored.get(name + ".idx").to(at::kLong);
  const at::Tensor keep = outside_noise(all_indices, noise);
  const at::Tensor indices = all_indices.masked_select(keep);
  const at::Tensor wanted = flat_double(stored.get(name + ".val")).masked_select(keep);
  const bool inside = indices.numel() == 0 || (indices.ge(0).all().item<bool>() && indices.lt(got.numel()).all().item<bool>());
  if (!inside) {
    ComparisonRow row;
    row.tensor = name + ".val";
    row.reason = cat("samples lie outside the tensor: elements=", got.numel());
    return row;
  }
  const double rms = stored.contains(name + ".norm")
                         ? stored.number(name + ".norm") / std::sqrt(static_cast<double>(std::max<int64_t>(1, got.numel())))
                         : root_mean_square(wanted);
  // Samples may miss the largest entry: 4 root mean squares stand in for it. A few samples may exceed the root mean square.
  const Scales scales{std::max(largest(wanted), 4 * rms), std::max(rms, root_mean_square(wanted))};
  return compare_scaled(name + ".val", flat_double(got).index_select(0, indices), wanted, scales, bounds);
}

ComparisonRow compare_sum(const std::string& name, const at::Tensor& got, const StoredTensors& stored, const Bounds& bounds) {
  ComparisonRow row;
  row.tensor = name + ".sum";
  row.max_abs = std::abs(got.sum().item<double>() - stored.number(name + ".sum"));
  // |sum(a - b)| <= sqrt(n) ||a - b|| (Cauchy and Schwarz).
  row.rel_l2 = ratio(row.max_abs, std::sqrt(static_cast<double>(got.numel())) * norm_of(got));
  row.tolerance_rel_l2 = bounds.rel_l2;
  decide(row);
  return row;
}

}  // namespace

ComparisonRow compare_values(const std::string& name, const at::Tensor& got, const at::Tensor& wanted, const Bounds& bounds,
                             const NoiseRange& noise) {
  if (got.numel() != wanted.numel()) {
    ComparisonRow row;
    row.tensor = name;
    row.reason = cat("element counts differ: got=", got.numel(), ", wanted=", wanted.numel());
    return row;
  }
  if (all_noise(noise, wanted.numel())) return skipped(name, kNoise);
  at::Tensor a = flat_double(got);
  at::Tensor b = flat_double(wanted);
  if (noise) {
    const at::Tensor keep = outside_noise(at::arange(b.numel(), at::kLong), noise);
    a = a.masked_select(keep);
    b = b.masked_select(keep);
  }
  return compare_scaled(name, a, b, {largest(b), root_mean_square(b)}, bounds);
}

ComparisonRow compare_number(const std::string& name, double got, double wanted, double relative) {
  ComparisonRow row;
  row.tensor = name;
  row.max_abs = std::abs(got - wanted);
  row.rel_l2 = ratio(row.max_abs, std::abs(wanted));
  row.tolerance_rel_l2 = relative;
  decide(row);
  return row;
}

std::vector<ComparisonRow> compare_stored(const std::string& name, const at::Tensor& got, const StoredTensors& stored,
                                          const Bounds& bounds, const NoiseRange& noise) {
  if (all_noise(noise, got.numel())) return {skipped(name, kNoise)};
  std::vector<ComparisonRow> rows;
  if (stored.contains(name)) rows.push_back(compare_values(name, got, stored.get(name), bounds, noise));
  if (stored.contains(name + ".val")) rows.push_back(compare_samples(name, got, stored, bounds, noise));
  if (noise) return rows;  // what follows sums over the noise too
  const at::Tensor wide = got.detach().to(at::kDouble);
  if (stored.contains(name + ".norm")) {
    rows.push_back(compare_number(name + ".norm", norm_of(wide), stored.number(name + ".norm"), bounds.rel_l2));
  }
  if (stored.contains(name + ".sum")) rows.push_back(compare_sum(name, wide, stored, bounds));
  if (stored.contains(name + ".channel_norm")) {
    const at::Tensor norms = at::linalg_vector_norm(wide.flatten(2), 2, at::IntArrayRef{2});
    rows.push_back(compare_values(name + ".channel_norm", norms, stored.get(name + ".channel_norm"), {.rel_l2 = bounds.rel_l2}));
  }
  return rows;
}

ComparisonRow skipped(const std::string& name, std::string reason) {
  ComparisonRow row;
  row.tensor = name;
  row.verdict = Verdict::Skipped;
  row.reason = std::move(reason);
  return row;
}

}  // namespace welkin::train::reference
