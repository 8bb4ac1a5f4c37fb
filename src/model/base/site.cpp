// SPDX-License-Identifier: Apache-2.0
// Composition of wrappers, and the names that belong to a site.
#include "model/base/site.h"

#include <algorithm>

namespace welkin::model {

namespace {

bool is_below(std::string_view name, std::string_view path) {
  return name.size() > path.size() && name.starts_with(path) && name[path.size()] == '.';
}

}  // namespace

bool Site::holds(std::string_view name) const {
  if (is_below(name, name_)) return true;
  return std::ranges::any_of(layers_, [&](const std::string& layer) { return name == layer || is_below(name, layer); });
}

void Site::install(Wrapper wrapper) {
  if (!wrapper_) {
    wrapper_ = std::move(wrapper);
    return;
  }
  wrapper_ = [outer = std::move(wrapper), inner = std::move(wrapper_)](Tensors in, const Body& body) {
    return outer(std::move(in), [inner, body](Tensors passed) { return inner(std::move(passed), body); });
  };
}

}  // namespace welkin::model
