// SPDX-License-Identifier: Apache-2.0
// Comparisons in double.
#include "verify/cases/comparison.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/linalg_vector_norm.h>

#include <algorithm>
#include <cmath>

#include "core/text.h"

namespace welkin::verify {
namespace {

at::Tensor flat_double(const at::Tensor& x) { return x.detach().to(at::kCPU, at::kDouble).flatten(); }
double largest(const at::Tensor& x) { return x.numel() == 0 ? 0.0 : x.abs().max().item<double>(); }
double norm_of(const at::Tensor& x) { return at::linalg_vector_norm(x).item<double>(); }
double ratio(double a, double b) { return a == 0 ? 0.0 : a / b; }  // 0/0 is equality

// A NaN fails every comparison.
void decide(ComparisonRow& row) {
  const bool good = row.max_over_max <= row.tolerance_max_over_max && row.rel_l2 <= row.tolerance_rel_l2;
  row.verdict = good ? Verdict::Pass : Verdict::Fail;
}

// Scales of the whole tensor; `wanted` may have only samples of it.
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

// (B, h w, F) may be compared with (B, h, w, F).
bool same_shape(at::IntArrayRef got, at::IntArrayRef wanted) {
  if (got == wanted) return true;
  return wanted.size() == 4 && got.size() == 3 && got[0] == wanted[0] && got[1] == wanted[1] * wanted[2] && got[2] == wanted[3];
}

ComparisonRow compare_samples(const std::string& name, const at::Tensor& got, const StoredTensors& stored, const Bounds& bounds,
                              const NoiseRange& noise) {
  if (!stored.contains(name + ".idx")) return failed(name, "samples without their indices: .idx is missing");
  const at::Tensor all_indices = stored.get(name + ".idx").to(at::kLong).flatten();
  if (stored.info(name + ".val").shape != stored.info(name + ".idx").shape) {
    return failed(name, "samples and their indices differ in number");
  }
  const at::Tensor keep = outside_noise(all_indices, noise);
  const at::Tensor indices = all_indices.masked_select(keep);
  const at::Tensor wanted = flat_double(stored.get(name + ".val")).masked_select(keep);
  const bool inside = indices.numel() == 0 || (indices.ge(0).all().item<bool>() && indices.lt(got.numel()).all().item<bool>());
  if (!inside) return failed(name + ".val", cat("wrong shape: samples lie outside the tensor, elements=", got.numel()));
  const double rms = stored.contains(name + ".norm")
                         ? stored.number(name + ".norm") / std::sqrt(static_cast<double>(std::max<int64_t>(1, got.numel())))
                         : root_mean_square(wanted);
  // Samples may miss the largest entry: 4 root mean squares stand in for it. A few samples may exceed the root mean square.
  const Scales scales{std::max(largest(wanted), 4 * rms), std::max(rms, root_mean_square(wanted))};
  return compare_scaled(name + ".val", flat_double(got).index_select(0, indices), wanted, scales, bounds);
}

ComparisonRow compare_sum(const std::string& name, const at::Tensor& got, double wanted, const Bounds& bounds) {
  ComparisonRow row;
  row.tensor = name + ".sum";
  row.max_abs = std::abs(got.sum().item<double>() - wanted);
  // |sum(a - b)| <= sqrt(n) ||a - b|| (Cauchy and Schwarz).
  row.rel_l2 = ratio(row.max_abs, std::sqrt(static_cast<double>(got.numel())) * norm_of(got));
  row.tolerance_rel_l2 = bounds.rel_l2;
  decide(row);
  return row;
}

}  // namespace

ComparisonRow compare_values(const std::string& name, const at::Tensor& got, const at::Tensor& wanted, const Bounds& bounds,
                             const NoiseRange& noise) {
  if (!same_shape(got.sizes(), wanted.sizes()) && (got.numel() != 1 || wanted.numel() != 1)) {
    return failed(name, cat("wrong shape: computed=", got.sizes(), ", stored=", wanted.sizes()));
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

ComparisonRow compare_exactly(const std::string& name, const at::Tensor& got, const at::Tensor& wanted) {
  ComparisonRow row = compare_values(name, got, wanted, {.rel_l2 = 0, .max_over_max = 0});
  if (row.verdict == Verdict::Fail && row.reason.empty()) {
    row.reason = cat(flat_double(got).ne(flat_double(wanted)).sum().item<int64_t>(), " of ", wanted.numel(), " values differ");
  }
  return row;
}

ComparisonRow compare_flag(const std::string& name, bool equal, std::string reason_of_failure) {
  ComparisonRow row;
  row.tensor = name;
  row.tolerance_max_over_max = row.tolerance_rel_l2 = 0;
  row.verdict = equal ? Verdict::Pass : Verdict::Fail;
  if (!equal) row.reason = std::move(reason_of_failure);
  return row;
}

namespace {

// The worst row of one tensor.
ComparisonRow merged(const std::string& name, const std::vector<ComparisonRow>& rows) {
  ComparisonRow all = rows.front();
  all.tensor = name;
  for (const ComparisonRow& row : rows) {
    all.max_abs = std::max(all.max_abs, row.max_abs);
    all.max_over_max = std::max(all.max_over_max, row.max_over_max);
    all.rel_l2 = std::max(all.rel_l2, row.rel_l2);
    if (row.verdict != Verdict::Fail) continue;
    all.verdict = Verdict::Fail;
    const std::string what = row.tensor.substr(std::min(row.tensor.size(), name.size()));
    all.reason = cat(all.reason, all.reason.empty() ? "" : "; ", what.empty() ? "values" : what, row.reason.empty() ? "" : ": ",
                     row.reason);
  }
  return all;
}

}  // namespace

ComparisonRow compare_stored(const std::string& name, const at::Tensor& got, const StoredTensors& stored, const Bounds& bounds,
                             const NoiseRange& noise) {
  if (all_noise(noise, got.numel())) {
    for (const std::string& stored_name : stored.names()) {
      if (tensor_of(stored_name) == name) stored.get(stored_name);
    }
    return skipped(name, kNoise);
  }
  std::vector<ComparisonRow> rows;
  if (stored.contains(name)) rows.push_back(compare_values(name, got, stored.get(name), bounds, noise));
  if (stored.contains(name + ".val")) rows.push_back(compare_samples(name, got, stored, bounds, noise));
  const at::Tensor wide = got.detach().to(at::kCPU, at::kDouble);
  const bool has_norm = stored.contains(name + ".norm");
  const double norm = has_norm ? stored.number(name + ".norm") : 0;
  const double sum = stored.contains(name + ".sum") ? stored.number(name + ".sum") : 0;
  if (!noise) {  // these sum over the noise too
    if (has_norm) rows.push_back(compare_number(name + ".norm", norm_of(wide), norm, bounds.rel_l2));
    if (stored.contains(name + ".sum")) rows.push_back(compare_sum(name, wide, sum, bounds));
    if (stored.contains(name + ".channel_norm")) {
      const at::Tensor norms = at::linalg_vector_norm(wide.flatten(2), 2, at::IntArrayRef{2});
      rows.push_back(
          compare_values(name + ".channel_norm", norms, stored.get(name + ".channel_norm"), {.rel_l2 = bounds.rel_l2}));
    }
  }
  if (rows.empty()) return failed(name, "the case holds no value of this tensor");
  return merged(name, rows);
}

ComparisonRow skipped(const std::string& name, std::string reason) {
  ComparisonRow row;
  row.tensor = name;
  row.verdict = Verdict::Skipped;
  row.reason = std::move(reason);
  return row;
}

ComparisonRow failed(const std::string& name, std::string reason, std::string part) {
  ComparisonRow row;
  row.tensor = name;
  row.reason = std::move(reason);
  row.part = std::move(part);
  return row;
}

std::string tensor_of(const std::string& stored_name) {
  for (const std::string suffix : {".norm", ".sum", ".idx", ".val", ".channel_norm"}) {
    // "act.norm" is the final norm's activation, not the norm of "act".
    if (!stored_name.ends_with(suffix) || stored_name == "act.norm" || stored_name.ends_with(".act.norm")) continue;
    return stored_name.substr(0, stored_name.size() - suffix.size());
  }
  return stored_name;
}

}  // namespace welkin::verify
