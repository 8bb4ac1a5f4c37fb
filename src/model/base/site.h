// SPDX-License-Identifier: Apache-2.0
// A site is a named place in a model where others may surround or replace a computation (tensor parallelism, checkpointing,
// ...). Without a wrapper a site just calls its body. A model owns its sites; parallel/ installs wrappers; neither depends on
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
  // `layers`: paths of the layers that are used here, if they do not follow from the site's name.
  explicit Site(std::string name, std::vector<std::string> layers = {}) : name_(std::move(name)), layers_(std::move(layers)) {}
  const std::string& name() const { return name_; }

  // True if the computation here includes the layer, parameter or site of this name.
  bool holds(std::string_view name) const;

  // Later wrappers surround earlier ones. Only before the first forward pass, by the thread that owns the model.
  void install(Wrapper wrapper);

  // True without wrappers: the caller may then fuse the body with the next operator.
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
