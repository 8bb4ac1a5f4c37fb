// SPDX-License-Identifier: Apache-2.0
#include "train/evaluate/time_mean.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "data/formats/npy_file.h"

namespace welkin::train {
namespace {

constexpr int64_t kMostValues = int64_t{1} << 28;  // 2 GiB of doubles: 26 years of ERA5's 20 channels need 2^22

at::Tensor per_channel(const std::vector<double>& values) { return at::tensor(values, at::kDouble).view({-1, 1, 1}); }

std::vector<int64_t> channels_of_file(const data::SampleSpec& spec) {
  if (!spec.target_of_file.empty()) return spec.target_of_file;
  std::vector<int64_t> channels(static_cast<size_t>(spec.target.shape[0]));
  std::iota(channels.begin(), channels.end(), 0);
  return channels;
}

}  // namespace

at::Tensor read_time_mean(const std::string& path, const data::SampleSpec& spec) {
  if (path.empty() || spec.target.shape.size() != 3 || !std::filesystem::exists(path)) return {};
  const data::NpyFile file(path);
  const auto& have = file.header().shape;
  const auto& want = spec.target.shape;
  const auto [row, column] = spec.first_cell;
  const std::vector<int64_t> channels = channels_of_file(spec);
  const bool goes_around = spec.columns_around > 0;
  const bool has_columns = have.size() == 4 && (goes_around ? have[3] == spec.columns_around : have[3] >= column + want[2]);
  if (!has_columns || have[0] != 1 || have[1] <= *std::ranges::max_element(channels) || have[2] < row + want[1]) {
    throw DataError(
        "time mean",
        cat("shape does not fit: file=", path, ", shape=(", join(have, ", "), "), wanted=(1, ", join(want, ", "), ")"),
        "Write it again with welkin data stats, or set time_means_path to another file");
  }
  at::Tensor map = at::tensor(file.read_doubles(kMostValues), at::kDouble).view(have).select(0, 0);
  map = map.index_select(0, at::tensor(channels, at::kLong)).narrow(1, row, want[1]);
  const at::Tensor columns = at::arange(column, column + want[2], at::kLong).remainder(have[3]);
  map = map.index_select(2, columns);
  const data::ArrayTransform transform = data::target_transform(spec);
  for (size_t i = 0; i < transform.log.size(); ++i) {
    const double eps = transform.log_eps.empty() ? 1.0 : transform.log_eps[i];
    at::Tensor channel = map.select(0, transform.log[i]);
    channel.div_(eps).log1p_();
  }
  if (!spec.target_std.empty()) map = (map - per_channel(spec.target_mean)) / per_channel(spec.target_std);
  return map.to(at::kFloat).contiguous();
}

}  // namespace welkin::train
