// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/channel_scaling.h"

#include <charconv>
#include <cmath>

#include "core/error.h"
#include "core/text.h"

namespace welkin::data {
namespace {

[[noreturn]] void refuse_scaling(const ArrayFile& file, std::string_view array, const std::string& what) {
  throw DataError(
      "data",
      cat("attributes that do not say how the values were scaled: file=", file.path.string(), ", dataset=", array, ", ", what),
      "Make the file again, or remove its attributes transform, offset and scale");
}

// Numbers, or texts of numbers, as welkin data ingest writes them.
std::vector<double> numbers_of(const ArrayFile& file, std::string_view array, std::string_view name) {
  std::vector<double> numbers = file.numbers(array, name);
  for (const std::string& text : file.texts(array, name)) {
    double value = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem != std::errc() || end != text.data() + text.size()) refuse_scaling(file, array, cat(name, "=", text));
    numbers.push_back(value);
  }
  return numbers;
}

}  // namespace

std::vector<ChannelScaling> scaling_of(const ArrayFile& file, std::string_view array) {
  const std::vector<std::string> transforms = file.texts(array, "transform");
  if (transforms.empty()) return {};
  const std::vector<double> offsets = numbers_of(file, array, "offset"), scales = numbers_of(file, array, "scale");
  const auto channels = static_cast<size_t>(file.array(array)->facts().shape.front());
  if (transforms.size() != channels || offsets.size() != channels || scales.size() != channels) {
    refuse_scaling(
        file, array,
        cat("channels=", channels, ", transforms=", transforms.size(), ", offsets=", offsets.size(), ", scales=", scales.size()));
  }
  std::vector<ChannelScaling> scaling;
  for (size_t c = 0; c < channels; ++c) {
    if (!std::isfinite(offsets[c]) || !std::isfinite(scales[c]) || scales[c] == 0)
      refuse_scaling(file, array, cat("channel=", c, ", offset=", offsets[c], ", scale=", scales[c]));
    scaling.push_back({transforms[c], offsets[c], scales[c]});
  }
  return scaling;
}

}  // namespace welkin::data
