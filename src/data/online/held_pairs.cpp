// SPDX-License-Identifier: Apache-2.0
#include "data/online/held_pairs.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "data/formats/array_file.h"
#include "data/formats/array_writer.h"

namespace welkin::data {
namespace {

OutputArray pair_array(const char* name, const ArraySpec& spec, const std::vector<double>& mean, const std::vector<double>& std,
                       int64_t pairs) {
  OutputArray array{.name = name,
                    .shape = spec.shape,
                    .chunk = {},
                    .dtype = Dtype::F32,
                    .codecs = {},
                    .axes = {},
                    .attributes = {{"channels", spec.channels}, {"units", spec.units}, {"mean", mean}, {"std", std}}};
  array.shape.insert(array.shape.begin(), pairs);
  return array;
}

void read_side(const ArrayFile& file, const char* name, ArraySpec& spec, std::vector<double>& mean, std::vector<double>& std) {
  const Extents& shape = file.array(name)->facts().shape;
  const Extents wanted = spec.shape;
  const std::vector<std::string> channels = file.texts(name, "channels"), units = file.texts(name, "units");
  mean = file.numbers(name, "mean"), std = file.numbers(name, "std");
  const size_t count = spec.channels.size();
  const bool fits = shape.size() == wanted.size() + 1 && std::equal(wanted.begin(), wanted.end(), shape.begin() + 1) &&
                    channels == spec.channels && units.size() == count && mean.size() == count && std.size() == count &&
                    std::ranges::all_of(std, [](double value) { return value > 0; });
  if (fits) {
    spec.units = units;
    return;
  }
  throw DataError("online",
                  cat("the pairs held out are not those of this run: path=", file.path.string(), ", array=", name, ", shape=(",
                      join(shape, ", "), "), channels=[", join(channels, ", "), "], run's shape=(pairs, ", join(wanted, ", "),
                      "), run's channels=[", join(spec.channels, ", "), "]"),
                  "Name another folder with valid_data_path, or remove the file");
}

std::vector<double> read_axis(const ArrayFile& file, const char* name, int64_t length) {
  if (!file.has(name)) return {};
  std::vector<double> values = file.array(name)->read_doubles();
  if (static_cast<int64_t>(values.size()) == length) return values;
  throw DataError("online",
                  cat("an axis of another length than the fields: path=", file.path.string(), ", array=", name,
                      ", length=", values.size(), ", wanted=", length),
                  "Name another folder with valid_data_path, or remove the file");
}

SampleSpec described(const ArrayFile& file, SampleSpec spec) {
  read_side(file, "input", spec.input, spec.input_mean, spec.input_std);
  read_side(file, "target", spec.target, spec.target_mean, spec.target_std);
  const size_t dims = spec.input.shape.size();
  spec.latitude = read_axis(file, "latitude", spec.input.shape.at(dims - 2));
  spec.longitude = read_axis(file, "longitude", spec.input.shape.at(dims - 1));
  if (!spec.latitude.empty()) spec.geometry = Geometry::Sphere;
  return spec;
}

void copy_whole(const std::vector<float>& from, std::span<float> to) {
  if (to.empty()) return;
  WELKIN_CHECK(to.size() == from.size(), "a part of a pair: one process reads whole ones");
  std::ranges::copy(from, to.begin());
}

}  // namespace

void HeldPairs::read(const SamplePlan& plan, SampleView out) const {
  const StreamedPair& pair = pairs_->at(static_cast<size_t>(plan.index));
  copy_whole(pair.input, out.input);
  copy_whole(pair.target, out.target);
}

std::string HeldPairs::location(const SamplePlan& plan) const { return cat("pair held out=", plan.index); }

void write_held_pairs(const std::filesystem::path& path, const SampleSpec& spec, const std::vector<StreamedPair>& pairs) {
  const auto count = static_cast<int64_t>(pairs.size());
  OutputFile output;
  output.arrays = {pair_array("input", spec.input, spec.input_mean, spec.input_std, count),
                   pair_array("target", spec.target, spec.target_mean, spec.target_std, count)};
  if (!spec.latitude.empty()) add_coordinate(output, "latitude", spec.latitude, latitude_attributes());
  if (!spec.longitude.empty()) add_coordinate(output, "longitude", spec.longitude, longitude_attributes());
  write_path_atomically(path, [&](const std::filesystem::path& unfinished) {
    const auto writer = make_hdf5_writer(unfinished, output);
    for (size_t array = 0; array < 2; ++array) {
      ArrayRegion region = whole_region(output.arrays[array].shape);
      for (int64_t i = 0; i < count; ++i) {
        region.begin[0] = i, region.end[0] = i + 1;
        const StreamedPair& pair = pairs[static_cast<size_t>(i)];
        writer->write(array, region, std::as_bytes(std::span<const float>(array == 0 ? pair.input : pair.target)));
      }
    }
    writer->finish();
  });
}

SampleSpec read_held_spec(const std::filesystem::path& path, SampleSpec spec) {
  return described(open_array_file(path), std::move(spec));
}

HeldPairs read_held_pairs(const std::filesystem::path& path, SampleSpec spec) {
  const ArrayFile file = open_array_file(path);
  spec = described(file, std::move(spec));
  const auto input = file.array("input"), target = file.array("target");
  const int64_t count = input->facts().shape.front();
  if (target->facts().shape.front() != count) {
    throw DataError("online",
                    cat("inputs and targets are not as many: path=", path.string(), ", inputs=", count,
                        ", targets=", target->facts().shape.front()),
                    "Remove the file: the next run makes it again");
  }
  auto pairs = std::make_shared<std::vector<StreamedPair>>(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    StreamedPair& pair = (*pairs)[static_cast<size_t>(i)];
    for (const auto& [array, values] : {std::pair{input, &pair.input}, std::pair{target, &pair.target}}) {
      ArrayRegion region = whole_region(array->facts().shape);
      region.begin[0] = i, region.end[0] = i + 1;
      values->resize(static_cast<size_t>(region.num_values()));
      array->read(region, std::span<float>(*values));
    }
  }
  return {std::move(spec), std::move(pairs)};
}

}  // namespace welkin::data
