// SPDX-License-Identifier: Apache-2.0
// The dictionary between sites and the reference's names.
#include "train/reference/activations.h"

namespace welkin::train::reference {

ActivationCapture::ActivationCapture(model::Model& model) {
  for (model::Site* site : model.sites()) {
    const std::string name = site->name();
    site->install([this, name](model::Tensors in, const model::Body& body) {
      const at::Tensor first = in.at(0);
      model::Tensors out = body(std::move(in));
      if (enabled) values_[name] = {first.detach(), out.at(0).detach()};
      return out;
    });
  }
}

at::Tensor ActivationCapture::in_of(const std::string& site) const {
  const auto found = values_.find(site);
  return found == values_.end() ? at::Tensor() : found->second.in;
}

at::Tensor ActivationCapture::out_of(const std::string& site) const {
  const auto found = values_.find(site);
  return found == values_.end() ? at::Tensor() : found->second.out;
}

at::Tensor ActivationCapture::find(const std::string& activation) const {
  const std::string name = activation.substr(activation.find('.') + 1);
  if (name == "tokens") return out_of("tokens.in");
  if (name == "norm") return in_of("tokens.out");
  if (!name.starts_with("block")) return out_of(name);  // patch_embed, head, conv_down1, ...
  const size_t dot = name.find('.');
  const std::string block = "blocks." + name.substr(5, dot == std::string::npos ? dot : dot - 5);
  if (dot == std::string::npos) return out_of(block);
  const std::string part = name.substr(dot + 1);
  if (part == "norm1") return in_of(block + ".attn");
  if (part == "norm2") return in_of(block + ".mlp");
  return out_of(block + "." + part);
}

}  // namespace welkin::train::reference
