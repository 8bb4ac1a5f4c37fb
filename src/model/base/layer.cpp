// SPDX-License-Identifier: Apache-2.0
// Paths, and the walk over children.
#include "model/base/layer.h"

#include <algorithm>

namespace welkin::model {
namespace {

void append_sites(std::vector<Site*>& sites, const std::vector<std::shared_ptr<torch::nn::Module>>& children) {
  for (const auto& child : children) {
    for (Site* site : sites_of(*child)) {
      if (std::ranges::find(sites, site) == sites.end()) sites.push_back(site);  // a layer may be registered twice
    }
  }
}

}  // namespace

std::string Layer::path_of(std::string_view name) const {
  if (path_.empty()) return std::string(name);
  std::string full = path_;
  full += '.';
  full += name;
  return full;
}

std::vector<Site*> Layer::sites() {
  std::vector<Site*> sites = own_sites();
  append_sites(sites, children());
  return sites;
}

std::vector<Site*> sites_of(torch::nn::Module& module) {
  if (auto* layer = dynamic_cast<Layer*>(&module)) return layer->sites();
  std::vector<Site*> sites;
  append_sites(sites, module.children());
  return sites;
}

std::vector<std::shared_ptr<torch::nn::Module>> modules_in(const torch::nn::Module& module) {
  std::vector<std::shared_ptr<torch::nn::Module>> once;
  for (const auto& held : module.modules(/*include_self=*/false)) {
    if (std::ranges::find(once, held) == once.end()) once.push_back(held);
  }
  return once;
}

void Layer::initialise(uint64_t seed) {
  for (const auto& child : children()) {
    if (auto* layer = dynamic_cast<Layer*>(child.get())) layer->initialise(seed);
  }
}

}  // namespace welkin::model
