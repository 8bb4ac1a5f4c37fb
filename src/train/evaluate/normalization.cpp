// SPDX-License-Identifier: Apache-2.0
#include "train/evaluate/normalization.h"

#include <nlohmann/json.hpp>
#include <vector>

namespace welkin::train {
namespace {

struct Steps {
  const std::vector<double>&mean, &std, &clip;
  const std::vector<int64_t>& log;
};

nlohmann::ordered_json side(const data::ArraySpec& array, const Steps& steps) {
  std::vector<std::string> logarithms, transforms;
  std::vector<double> offsets, scales;
  for (const data::ChannelScaling& scaling : array.scaling) {
    transforms.push_back(scaling.transform);
    offsets.push_back(scaling.offset);
    scales.push_back(scaling.scale);
  }
  for (const int64_t channel : steps.log) logarithms.push_back(array.channels.at(static_cast<size_t>(channel)));
  return {{"channels", array.channels}, {"units", array.units},    {"mean", steps.mean}, {"std", steps.std}, {"clip", steps.clip},
          {"log1p", logarithms},        {"transform", transforms}, {"offset", offsets},  {"scale", scales}};
}

}  // namespace

std::string normalization_json(const data::SampleSpec& spec) {
  const nlohmann::ordered_json json = {
      {"input", side(spec.input, {spec.input_mean, spec.input_std, spec.input_clip, spec.input_log})},
      {"target", side(spec.target, {spec.target_mean, spec.target_std, spec.target_clip, spec.target_log})}};
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace welkin::train
