// SPDX-License-Identifier: Apache-2.0
// The dictionary between sites and the reference's names.
#include "verify/engine/activations.h"

namespace welkin::verify {

ActivationCapture::ActivationCapture(model::Model& model) {
  for (model::Site* site : model.sites()) {
    const std::string name = site->name();
    site->install([this, name](model::Tensors in, const model::Body& body) {
      const Activation before{in.at(0).detach(), ++count_};
      model::Tensors out = body(std::move(in));
      if (enabled) values_[name] = {before, {out.at(0).detach(), ++count_}};
      return out;
    });
  }
}

void ActivationCapture::clear() {
  values_.clear();
  count_ = 0;
}

Activation ActivationCapture::in_of(const std::string& site) const {
  const auto found = values_.find(site);
  return found == values_.end() ? Activation{} : found->second.in;
}

Activation ActivationCapture::out_of(const std::string& site) const {
  const auto found = values_.find(site);
  return found == values_.end() ? Activation{} : found->second.out;
}

Activation ActivationCapture::find(const std::string& activation) const {
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

int64_t ActivationCapture::order_of(const std::string& parameter) const {
  if (parameter == "pos_embed") return out_of("tokens.in").order;
  std::string path = parameter;
  for (size_t dot = path.rfind('.'); dot != std::string::npos; dot = path.rfind('.')) {
    path.resize(dot);
    if (path == "norm") return in_of("tokens.out").order;
    if (path.ends_with(".norm1")) return in_of(path.substr(0, path.size() - 5) + "attn").order;
    if (path.ends_with(".norm2")) return in_of(path.substr(0, path.size() - 5) + "mlp").order;
    if (const Activation out = out_of(path); out.value.defined()) return out.order;
  }
  return 0;
}

}  // namespace welkin::verify
