// SPDX-License-Identifier: Apache-2.0
// A site is a named place in a model at which others may surround or replace a piece of work (tensor parallelism, checkpointing,
// ...). With nothing installed a site just calls its body. A model owns its sites; parallel/ installs into them; neither knows
// the other.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace welkin::model {

using Tensors = std::vector<at::Tensor>;
using Body = std::function<Tensors(Tensors)>;
using Wrapper = std::function<Tensors(Tensors, const Body&)>;

class Site {
 public:
  // `layers`: paths of the layers that work here, where these do not follow from the site's name.
  explicit Site(std::string name, std::vector<std::string> layers = {}) : name_(std::move(name)), layers_(std::move(layers)) {}
  const std::string& name() const { return name_; }

  // Whether the layer, parameter or site of this name is part of the work that is done here.
  bool holds(std::string_view name) const;

  // Later wrappers surround earlier ones. Only before the first forward pass, by the thread that owns the model.
  void install(Wrapper wrapper);

  // Nothing is installed: the caller may fuse the body with what follows it.
  bool is_unwrapped() const { return !wrapper_; }

  // A wrapper may keep the body and call it again during the backward pass: a body captures tensors by value and modules by
  // pointer, never a local by reference.
  template <typename Function>
  Tensors operator()(Tensors in, Function&& body) const {
    if (!wrapper_) return body(std::move(in));
    return wrapper_(std::move(in), Body(std::forward<Function>(body)));
  }

 private:
  std::string name_;
  std::vector<std::string> layers_;
  Wrapper wrapper_;
};

}  // namespace welkin::model
