// SPDX-License-Identifier: Apache-2.0
#include "train/evaluate/normalization.h"

#include <nlohmann/json.hpp>
#include <vector>

namespace welkin::train {
namespace {

nlohmann::ordered_json side(const data::ArraySpec& array, const data::ArrayTransform& steps) {
  std::vector<std::string> logarithms, transforms;
  std::vector<double> offsets, scales;
  for (const data::ChannelScaling& scaling : array.scaling) {
    transforms.push_back(scaling.transform);
    offsets.push_back(scaling.offset);
    scales.push_back(scaling.scale);
  }
  for (const int64_t channel : steps.log) logarithms.push_back(array.channels.at(static_cast<size_t>(channel)));
  return {{"channels", array.channels}, {"units", array.units}, {"mean", steps.mean},
          {"std", steps.std},           {"clip", steps.clip},   {"log1p", logarithms},
          {"transform", transforms},    {"offset", offsets},    {"scale", scales},
          {"log1p_eps", steps.log_eps}};
}

}  // namespace

std::string normalization_json(const data::SampleSpec& spec) {
  const nlohmann::ordered_json json = {{"input", side(spec.input, data::input_transform(spec))},
                                       {"target", side(spec.target, data::target_transform(spec))}};
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace welkin::train
