// SPDX-License-Identifier: Apache-2.0
// Losses with gradients, and metrics, in float32 and float64. The tutorials' metrics use 3.1416 for pi and a last U-Net loss
// whose density term is divided by the number of channels: those rows are computed by their rules.
#include <ATen/TensorOperators.h>

#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "core/text.h"
#include "train/learn/loss.h"
#include "train/learn/metrics.h"
#include "verify/cases/reference_loss.h"
#include "verify/cases/table_cases.h"

namespace welkin::verify {
namespace loss_case {

struct Tolerances {
  double f32 = 0, f64 = 0, f32_exp = 0, latitude = 0;
};

// "vit0.weighted_rmse_f64_exact_pi" -> field "vit0", quantity "weighted_rmse", f64, exact pi.
struct Quantity {
  std::string field, name, tensor;
  int64_t lambda = -1;  // index into the case's lambdas
  bool is_double = false;
  bool exact_pi = false;
};

bool strip(std::string& text, const std::string& suffix) {
  if (!text.ends_with(suffix)) return false;
  text.resize(text.size() - suffix.size());
  return true;
}

Quantity parse(const std::string& tensor) {
  Quantity q{.field = {}, .name = tensor, .tensor = tensor};
  const size_t dot = tensor.find('.');
  if (dot == std::string::npos) return q;
  q.field = tensor.substr(0, dot);
  q.name = tensor.substr(dot + 1);
  q.exact_pi = strip(q.name, "_exact_pi");
  q.is_double = strip(q.name, "_f64");
  if (!q.is_double) strip(q.name, "_f32");
  if (const size_t at = q.name.find(".lambda"); at != std::string::npos) {
    q.lambda = static_cast<int64_t>(number_after(q.name, ".lambda", -1));
    q.name.resize(at);
  }
  return q;
}

class LossCase {
 public:
  LossCase(const CaseFolder& folder, const VerifyOptions& options) : data_(folder.need_tensors("data")), device_(options.device) {
    const auto& tolerance = folder.meta().at("tolerance");
    tolerances_.f32 = tolerance.at("f32").at("rel").get<double>();
    tolerances_.f64 = tolerance.at("f64").at("rel").get<double>();
    tolerances_.f32_exp = number_after(tolerance.value("exp", std::string()), "rel ", tolerances_.f32);
    tolerances_.latitude = number_after(tolerance.value("lat_weight", std::string()), "absolute ", 1e-6);
    if (folder.meta().contains("unet")) lambdas_ = folder.meta().at("unet").at("lambdas").get<std::vector<double>>();
  }

  Rows run() {
    Rows rows;
    std::set<std::string> fields;
    for (const std::string& tensor : data_.names()) {
      const Quantity q = parse(tensor);
      fields.insert(q.field);
      if (q.name == "pred" || q.name == "target") continue;
      if (std::optional<ComparisonRow> row = compare(q)) rows.push_back(std::move(*row));
    }
    for (const std::string& field : fields) add_own_float32(field, rows);
    return rows;
  }

 private:
  at::Tensor prediction(const Quantity& q) const { return data_.get(q.field + ".pred").to(device_, dtype(q)); }
  at::Tensor target(const Quantity& q) const { return data_.get(q.field + ".target").to(device_, dtype(q)); }
  static at::ScalarType dtype(const Quantity& q) { return q.is_double ? at::kDouble : at::kFloat; }

  double lambda_of(const Quantity& q) const {
    if (q.lambda >= 0 && q.lambda < static_cast<int64_t>(lambdas_.size())) return lambdas_[static_cast<size_t>(q.lambda)];
    throw DataError("reference", cat("the case states no such lambda: tensor=", q.tensor, ", lambdas=", lambdas_.size()),
                    "Correct unet.lambdas in meta.json");
  }

  std::optional<ComparisonRow> compare(const Quantity& q) const {
    const std::string& name = q.name;
    if (name == "l2_loss" || name == "l2_loss_grad" || name.starts_with("loss_func")) return compare_loss(q);
    if (name == "lat_weight" || name.starts_with("weighted_")) return compare_metric(q);
    return std::nullopt;  // stays unused: reported as not compared
  }

  ComparisonRow compare_loss(const Quantity& q) const {
    const bool relative = q.name.starts_with("l2_loss");
    const bool gradient = q.name.ends_with("_grad");
    const bool scripted = q.name == "loss_func_opt_final";  // the mean of its density term runs over all channels
    const at::Tensor p = prediction(q).requires_grad_();
    double lambda = relative ? 0 : lambda_of(q);
    if (scripted) lambda /= static_cast<double>(p.size(1));
    const train::LossPtr loss = relative ? train::relative_l2() : train::l1_rho(lambda);
    const at::Tensor mean = loss->per_sample(p, target(q)).mean();
    if (gradient) mean.backward();
    const double bound = q.is_double ? tolerances_.f64 : lambda > 0 ? tolerances_.f32_exp : tolerances_.f32;
    const at::Tensor got = gradient ? p.grad() : mean.detach();
    ComparisonRow row =
        compare_values((scripted ? "tutorial " : "") + q.tensor, got, data_.get(q.tensor), {.max_over_max = bound});
    row.part = gradient ? "gradient" : "loss";
    return row;
  }

  at::Tensor metric_of(const Quantity& q, bool exact_pi) const {
    const at::Tensor t = target(q);
    const at::Tensor weights = exact_pi ? train::latitude_weights(t.size(2)) : tutorial_latitude_weights(t.size(2));
    if (q.name == "lat_weight") return weights.view({-1, 1}).squeeze(1);
    const train::WeightedSums sums = train::weighted_sums(prediction(q), t, weights.to(device_));
    const bool rmse = q.name.starts_with("weighted_rmse");
    const at::Tensor channels = rmse ? train::weighted_rmse(sums, t.size(2) * t.size(3)) : train::weighted_acc(sums);
    return q.name.ends_with("_channels") ? channels : channels.mean(0);
  }

  ComparisonRow compare_metric(const Quantity& q) const {
    const double bound = q.is_double ? tolerances_.f64 : tolerances_.f32;
    const at::Tensor wanted = data_.get(q.tensor);
    const at::Tensor got = metric_of(q, q.exact_pi);
    ComparisonRow row =
        compare_values((q.exact_pi ? "" : "tutorial ") + q.tensor, got.numel() == wanted.numel() ? got.view(wanted.sizes()) : got,
                       wanted, {.max_over_max = bound});
    if (q.name == "lat_weight" && !q.is_double) {
      row.tolerance_max_over_max = tolerances_.latitude;
      row.verdict = row.max_abs <= tolerances_.latitude ? Verdict::Pass : Verdict::Fail;
    }
    row.part = "metric";
    return row;
  }

  // The case has no float32 numbers with the exact pi: ours stay within rounding of its float64 ones.
  void add_own_float32(const std::string& field, Rows& rows) const {
    for (const char* name : {"weighted_rmse_channels", "weighted_acc_channels"}) {
      const std::string stored = cat(field, ".", name, "_f64_exact_pi");
      if (!data_.contains(stored)) continue;
      const Quantity q{.field = field, .name = name, .tensor = stored};
      rows.push_back(compare_values(cat(field, ".", name, " in float32"), metric_of(q, true), data_.get(stored),
                                    {.max_over_max = tolerances_.f32}));
      rows.back().part = "metric";
    }
  }

  const StoredTensors& data_;
  c10::Device device_;
  Tolerances tolerances_;
  std::vector<double> lambdas_;
};

}  // namespace loss_case

Rows verify_losses(const CaseFolder& folder, const VerifyOptions& options) { return loss_case::LossCase(folder, options).run(); }

}  // namespace welkin::verify
