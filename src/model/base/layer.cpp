// SPDX-License-Identifier: Apache-2.0
// Paths, and the walk over children.
#include "model/base/layer.h"

namespace welkin::model {
namespace {

void append_sites(std::vector<Site*>& sites, const std::vector<std::shared_ptr<torch::nn::Module>>& children) {
  for (const auto& child : children) {
    const std::vector<Site*> more = sites_of(*child);
    sites.insert(sites.end(), more.begin(), more.end());
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

void Layer::initialise(uint64_t seed) {
  for (const auto& child : children()) {
    if (auto* layer = dynamic_cast<Layer*>(child.get())) layer->initialise(seed);
  }
}

}  // namespace welkin::model
