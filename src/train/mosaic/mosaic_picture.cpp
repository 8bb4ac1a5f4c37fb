// SPDX-License-Identifier: Apache-2.0
#include "train/mosaic/mosaic_picture.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <span>

#include "core/text.h"
#include "data/sample/dataset.h"
#include "data/storage/channel_op.h"
#include "train/evaluate/sample_picture.h"

namespace welkin::train {
namespace {

std::span<float> floats_of_box(const at::Tensor& x) { return {x.data_ptr<float>(), static_cast<size_t>(x.numel())}; }

// The model's form of such values: the picture undoes it as it does for samples.
at::Tensor normalised(const data::SampleSpec& spec, const at::Tensor& in_files) {
  at::Tensor values = in_files.to(at::kFloat).contiguous().clone();
  const auto ops = data::channel_ops(data::target_transform(spec), values.size(0), "target");
  const int64_t plane = values.size(1) * values.size(2);
  for (size_t c = 0; c < ops.size(); ++c) data::apply(ops[c], values.data_ptr<float>() + static_cast<int64_t>(c) * plane, plane);
  return values;
}

}  // namespace

void draw_mosaic_plane(const TrainedModel& model, int64_t z, const at::Tensor& prediction, const std::vector<int64_t>& channels,
                       const std::vector<std::filesystem::path>& paths) {
  const data::SampleSpec& spec = model.dataset().spec();
  const int64_t height = prediction.size(1), width = prediction.size(2), crop = model.config().data.data_size;
  const at::Tensor input = at::empty({1, spec.input.shape[0], 1, height, width}, at::kFloat);
  const at::Tensor target = at::empty({1, spec.target.shape[0], 1, height, width}, at::kFloat);
  for (int64_t y = 0; y < height; y += crop) {
    for (int64_t x = 0; x < width; x += crop) {
      const int64_t rows = std::min(crop, height - y), columns = std::min(crop, width - x);
      data::SamplePlan plan;
      plan.origin = {z, y, x};
      plan.region = {.begin = {0, 0, 0}, .extent = {1, rows, columns}};
      const at::Tensor of_input = at::empty({spec.input.shape[0], 1, rows, columns}, at::kFloat);
      const at::Tensor of_target = at::empty({spec.target.shape[0], 1, rows, columns}, at::kFloat);
      model.dataset().read(plan, {.input = floats_of_box(of_input), .target = floats_of_box(of_target), .transformed = true});
      input.select(0, 0).narrow(2, y, rows).narrow(3, x, columns).copy_(of_input);
      target.select(0, 0).narrow(2, y, rows).narrow(3, x, columns).copy_(of_target);
    }
  }
  const SampleFields fields{input, target, normalised(spec, prediction).unsqueeze(1).unsqueeze(0)};
  for (size_t i = 0; i < channels.size(); ++i) draw_sample(spec, fields, channels[i], {cat("plane z=", z), ""}, paths[i]);
}

}  // namespace welkin::train
