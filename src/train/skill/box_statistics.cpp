// SPDX-License-Identifier: Apache-2.0
#include "train/skill/box_statistics.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/fft_fftfreq.h>
#include <ATen/ops/fft_fftn.h>
#include <ATen/ops/fft_ifftn.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/histc.h>
#include <ATen/ops/max_pool3d.h>
#include <ATen/ops/real.h>
#include <ATen/ops/round.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/square.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/text.h"
#include "parallel/comm/collectives.h"

namespace welkin::train {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kBins = 72;
constexpr double kLowest = -4, kHighest = 14;  // deviations; a density has a long tail above
constexpr int kThresholds = 6;                 // peaks above 1, 2, ... deviations

// (D, H, W) int64: the rounded length of each wave vector.
at::Tensor shells_of(int64_t edge) {
  const at::Tensor wave = at::fft_fftfreq(edge, 1.0 / static_cast<double>(edge), at::kDouble);
  const at::Tensor square = wave.square();
  return at::round(at::sqrt(square.view({-1, 1, 1}) + square.view({1, -1, 1}) + square.view({1, 1, -1}))).to(at::kLong);
}

at::Tensor modes_of_shell(const at::Tensor& shells, size_t k) { return shells.eq(static_cast<int64_t>(k)).to(at::kDouble); }

Json list_of(const at::Tensor& values) {
  Json list = Json::array();
  const at::Tensor flat = values.to(at::kDouble).contiguous();
  for (int64_t i = 0; i < flat.numel(); ++i) {
    const double value = flat.const_data_ptr<double>()[i];
    list.push_back(std::isfinite(value) ? Json(value) : Json(nullptr));
  }
  return list;
}

}  // namespace

BoxStatistics::BoxStatistics(const data::SampleSpec& spec) : spec_(spec) {
  const auto& shape = spec.target.shape;
  if (shape.size() != 4 || shape[1] != shape[2] || shape[2] != shape[3]) {
    throw ConfigError("evaluate", "these data are no cubes of boxes: --box_statistics", "Leave it out");
  }
  shells_ = shells_of(shape[1]);
  num_shells_ = shells_.max().item<int64_t>() + 1;
  // Below a third of the edge, where no triangle is folded: the product of three fields whose modes are all 1.
  for (size_t k = 1; 6 * k + 3 < 2 * static_cast<size_t>(shape[1]); ++k)
    triangles_.push_back(at::real(at::fft_ifftn(modes_of_shell(shells_, k))).pow(3).sum());
  const auto zeros = [&](int64_t columns) { return at::zeros({shape[0], columns}, at::kDouble); };
  cross_ = zeros(num_shells_);
  for (Side* side : {&target_, &prediction_}) {
    *side = {zeros(num_shells_), zeros(static_cast<int64_t>(triangles_.size())), zeros(kBins), zeros(kThresholds)};
  }
}

// (C, K) of mode by mode values (C, D, H, W).
at::Tensor BoxStatistics::shell_sums(const at::Tensor& values) const {
  at::Tensor sums = at::zeros({values.size(0), num_shells_}, at::kDouble);
  return sums.index_add_(1, shells_.flatten(), values.flatten(1));
}

// (C, K'): for each length that has triangles the mean product of three modes of it.
at::Tensor BoxStatistics::equilateral(const at::Tensor& modes) const {
  std::vector<at::Tensor> values;
  for (size_t i = 0; i < triangles_.size(); ++i) {
    const at::Tensor kept = modes * modes_of_shell(shells_, i + 1);
    values.push_back(at::real(at::fft_ifftn(kept, c10::nullopt, at::IntArrayRef{1, 2, 3})).pow(3).sum({1, 2, 3}) / triangles_[i]);
  }
  return values.empty() ? at::zeros({modes.size(0), 0}, at::kDouble) : at::stack(values, 1);
}

void BoxStatistics::add_side(Side& side, const at::Tensor& fields, const at::Tensor& modes) {
  const auto points = static_cast<double>(fields[0].numel());
  side.power += shell_sums(at::square(at::abs(modes)) / (points * points));
  side.bispectrum += equilateral(modes / points);
  const at::Tensor highest = at::max_pool3d(fields.unsqueeze(0), {3, 3, 3}, {1, 1, 1}, {1, 1, 1}).squeeze(0);
  std::vector<at::Tensor> counts, peaks;
  for (int64_t c = 0; c < fields.size(0); ++c) {
    const auto at = static_cast<size_t>(c);
    const at::Tensor values = (fields[c] - mean_[at]) / deviation_[at];
    counts.push_back(at::histc(values, kBins, kLowest, kHighest));
    std::vector<at::Tensor> above;
    for (int threshold = 1; threshold <= kThresholds; ++threshold)
      above.push_back((fields[c].eq(highest[c]).logical_and(values.gt(threshold))).sum().to(at::kDouble));
    peaks.push_back(at::stack(above));
  }
  side.counts += at::stack(counts), side.peaks += at::stack(peaks);
}

void BoxStatistics::find_bins(const at::Tensor& crop) {
  for (int64_t c = 0; c < crop.size(0); ++c) {
    mean_.push_back(crop[c].mean().item<double>());
    deviation_.push_back(crop[c].std(/*unbiased=*/false).item<double>());
  }
}

void BoxStatistics::share_bins(const parallel::Group& replicas, const at::Tensor& target) {
  if (replicas.group_rank() == 0) find_bins(target[0].detach().to(at::kCPU, at::kDouble));
  if (replicas.size() == 1) return;
  for (std::vector<double>* values : {&mean_, &deviation_}) {
    values->resize(static_cast<size_t>(spec_.target.shape[0]));
    parallel::broadcast(replicas, at::from_blob(values->data(), {spec_.target.shape[0]}, at::kDouble), 0);
  }
}

std::vector<at::Tensor*> BoxStatistics::sums() {
  std::vector<at::Tensor*> sums{&cross_};
  for (Side* side : {&target_, &prediction_}) {
    sums.insert(sums.end(), {&side->power, &side->bispectrum, &side->counts, &side->peaks});
  }
  return sums;
}

void BoxStatistics::add_up(const parallel::Group& replicas) {
  for (at::Tensor* sum : sums()) *sum = parallel::all_reduce(replicas, *sum);
  crops_ = parallel::all_reduce(replicas, at::full({1}, crops_, at::kLong)).item<int64_t>();
}

void BoxStatistics::add(const at::Tensor& target, const at::Tensor& prediction) {
  for (int64_t b = 0; b < target.size(0); ++b) {
    const at::Tensor t = target[b].detach().to(at::kCPU, at::kDouble), p = prediction[b].detach().to(at::kCPU, at::kDouble);
    if (mean_.empty()) find_bins(t);
    constexpr std::array<int64_t, 3> kAxes{1, 2, 3};
    const at::Tensor target_modes = at::fft_fftn(t, c10::nullopt, kAxes), modes = at::fft_fftn(p, c10::nullopt, kAxes);
    const auto points = static_cast<double>(t[0].numel());
    add_side(target_, t, target_modes), add_side(prediction_, p, modes);
    cross_ += shell_sums(at::real(target_modes.conj() * modes) / (points * points));
    ++crops_;
  }
}

std::string BoxStatistics::json() const {
  Json channels = Json::object();
  const auto crops = static_cast<double>(crops_);
  const double width = (kHighest - kLowest) / static_cast<double>(kBins);
  const at::Tensor correlation = cross_ / at::sqrt(target_.power * prediction_.power);
  for (int64_t c = 0; c < spec_.target.shape[0]; ++c) {
    const auto at = static_cast<size_t>(c);
    const auto both = [&](const at::Tensor Side::*what, double scale) {
      return Json{{"target", list_of((target_.*what)[c] * scale)}, {"prediction", list_of((prediction_.*what)[c] * scale)}};
    };
    const auto points = static_cast<double>(spec_.target.shape[1] * spec_.target.shape[2] * spec_.target.shape[3]);
    Json distribution = both(&Side::counts, 1 / (crops * points * width * deviation_[at]));
    distribution["edges"] = list_of((at::arange(kBins + 1, at::kDouble) * width + kLowest) * deviation_[at] + mean_[at]);
    Json peaks = both(&Side::peaks, 1 / crops);
    peaks["above"] = list_of(at::arange(1, kThresholds + 1, at::kDouble) * deviation_[at] + mean_[at]);
    channels[spec_.target.channels[at]] = {{"power", both(&Side::power, 1 / crops)},
                                           {"correlation", list_of(correlation[c])},
                                           {"bispectrum", both(&Side::bispectrum, 1 / crops)},
                                           {"distribution", std::move(distribution)},
                                           {"peaks", std::move(peaks)}};
  }
  return Json{{"crops", crops_}, {"channels", std::move(channels)}}.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace welkin::train
