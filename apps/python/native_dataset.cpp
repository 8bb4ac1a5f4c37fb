// SPDX-License-Identifier: Apache-2.0
#include "apps/python/native_dataset.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "apps/python/run_facts.h"
#include "core/error.h"
#include "core/text.h"
#include "data/pipeline/sample_check.h"
#include "data/sample/sampler.h"

namespace welkin::apps::python {
namespace {

at::Tensor batch_of(int64_t samples, const data::ArraySpec& array) {
  std::vector<int64_t> sizes = array.shape;
  sizes.insert(sizes.begin(), samples);
  return at::empty(sizes, at::kFloat);
}

void apply_each(const std::vector<data::ChannelOp>& ops, std::span<float> values) {
  const auto points = static_cast<int64_t>(values.size() / ops.size());
  for (size_t channel = 0; channel < ops.size(); ++channel) {
    data::apply(ops[channel], values.data() + static_cast<int64_t>(channel) * points, points);
  }
}

size_t size_of(const data::ArraySpec& array) {
  size_t size = 1;
  for (const int64_t edge : array.shape) size *= static_cast<size_t>(edge);
  return size;
}

}  // namespace

NativeDataset::NativeDataset(std::unique_ptr<data::Dataset> dataset, const config::RunConfig& config,
                             std::shared_ptr<const void> source)
    : source_(std::move(source)),
      dataset_(std::move(dataset)),
      seed_(config.loop.seed),
      has_holes_(data::nan_policy_for(dataset_->spec(), config.data.nan_policy) == data::NanPolicy::Hole),
      input_ops_(data::channel_ops(data::input_transform(dataset_->spec()), dataset_->spec().input.shape.front(), "input")),
      target_ops_(data::channel_ops(data::target_transform(dataset_->spec()), dataset_->spec().target.shape.front(), "target")) {}

std::string NativeDataset::spec() const {
  return spec_json(dataset_->spec()).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

data::SampleKey NativeDataset::key_of(int64_t index) const {
  if (index < 0 || index >= size()) {
    throw ConfigError("python", cat("there is no such sample: index=", index, ", samples=", size()), "Count from 0");
  }
  return data::Sampler(size(), data::Order::Sequential, seed_).at(/*epoch=*/0, index);
}

std::string NativeDataset::location(int64_t index) const {
  return dataset_->location(dataset_->plan(key_of(index), data::whole(dataset_->spec())));
}

void NativeDataset::read_one(int64_t index, bool normalized, float* input, float* target) const {
  const data::SampleSpec& spec = dataset_->spec();
  const data::SampleView view{.input = {input, size_of(spec.input)},
                              .target = {target, size_of(spec.target)},
                              .transformed = normalized && dataset_->transforms()};
  dataset_->read(dataset_->plan(key_of(index), data::whole(spec)), view);
  if (!normalized) return;
  if (!view.transformed) {
    apply_each(input_ops_, view.input);
    apply_each(target_ops_, view.target);
  }
  if (has_holes_) data::fill_holes(view.input, spec.input.shape.front(), spec.input_fill);
}

std::tuple<at::Tensor, at::Tensor> NativeDataset::read(const std::vector<int64_t>& indices, bool normalized) const {
  const auto samples = static_cast<int64_t>(indices.size());
  at::Tensor input = batch_of(samples, dataset_->spec().input), target = batch_of(samples, dataset_->spec().target);
  auto* const inputs = input.data_ptr<float>();
  auto* const targets = target.data_ptr<float>();
  const auto input_size = static_cast<int64_t>(size_of(dataset_->spec().input));
  const auto target_size = static_cast<int64_t>(size_of(dataset_->spec().target));
  at::parallel_for(0, samples, /*grain_size=*/1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      read_one(indices[static_cast<size_t>(i)], normalized, inputs + i * input_size, targets + i * target_size);
    }
  });
  return {std::move(input), std::move(target)};
}

}  // namespace welkin::apps::python
