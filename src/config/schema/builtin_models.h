// SPDX-License-Identifier: Apache-2.0
// The models that come with Welkin, with the kind of samples that each takes. The registry (model/registry.h) knows the rest.
#pragma once

#include <string_view>

namespace welkin::config {

inline constexpr std::string_view kFieldModels = "vit|afno|sfno|swin|unet2d";  // of samples (channels, latitude, longitude)
inline constexpr std::string_view kBoxModels = "unet3d";                       // of samples (channels, depth, height, width)

// True if `name` is one of `names`, which '|' separates.
constexpr bool is_one_of(std::string_view name, std::string_view names) {
  while (!names.empty()) {
    const size_t end = names.find('|');
    if (!name.empty() && names.substr(0, end) == name) return true;
    names = end == std::string_view::npos ? std::string_view() : names.substr(end + 1);
  }
  return false;
}

constexpr bool takes_fields(std::string_view model) { return is_one_of(model, kFieldModels); }
constexpr bool takes_boxes(std::string_view model) { return is_one_of(model, kBoxModels); }
// The data set of pairs that another program produces while a run trains (data/online).
inline constexpr std::string_view kOnline = "online";
constexpr bool is_builtin(std::string_view model) { return takes_fields(model) || takes_boxes(model); }

}  // namespace welkin::config
