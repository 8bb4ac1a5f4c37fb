// SPDX-License-Identifier: Apache-2.0
// Composition of wrappers.
#include "model/base/site.h"

namespace welkin::model {

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
