// SPDX-License-Identifier: Apache-2.0
// The base of every layer: a torch module that knows its path in the model ("blocks.0.attn.q"). The path names its sites, its
// streams of random numbers and, with the parameter's own name, its parameters.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/base/site.h"

namespace welkin::model {

class Layer : public torch::nn::Module {
 public:
  explicit Layer(std::string path) : path_(std::move(path)) {}

  // Empty for the model itself.
  const std::string& path() const { return path_; }
  // Full name of a child, parameter or site of this layer.
  std::string path_of(std::string_view name) const;

  // The sites of this layer alone, in the order of the forward pass.
  virtual std::vector<Site*> own_sites() { return {}; }

  // The sites of this layer and of all layers in it, in the order of the forward pass. The default takes its own first, then
  // the children in the order of their registration.
  virtual std::vector<Site*> sites();

  // Sets the parameters from (seed, their names). The default passes it on to the children; a layer with parameters overrides it.
  virtual void initialise(uint64_t seed);

 protected:
  // Builds a child at its path and registers it: the name is written once. L's constructor takes the path first.
  template <typename L, typename... Arguments>
  std::shared_ptr<L> add(const std::string& name, Arguments&&... arguments) {
    return register_module(name, std::make_shared<L>(path_of(name), std::forward<Arguments>(arguments)...));
  }

 private:
  std::string path_;
};

// The sites of all layers in any module.
std::vector<Site*> sites_of(torch::nn::Module& module);

// All modules in it, each once: libtorch's modules() lists a module that is registered under two names twice.
std::vector<std::shared_ptr<torch::nn::Module>> modules_in(const torch::nn::Module& module);

// A plain sequence of layers under the names "0", "1", ... (torch's ModuleList): layers keep their parameter names in files.
template <typename L>
class LayerList : public Layer {
 public:
  using Layer::Layer;

  template <typename... Arguments>
  void append(Arguments&&... arguments) {
    layers_.push_back(this->template add<L>(std::to_string(layers_.size()), std::forward<Arguments>(arguments)...));
  }
  const std::vector<std::shared_ptr<L>>& layers() const { return layers_; }
  void pretty_print(std::ostream& stream) const override { stream << "ModuleList"; }

 private:
  std::vector<std::shared_ptr<L>> layers_;
};

}  // namespace welkin::model
