// SPDX-License-Identifier: Apache-2.0
// libFuzzer: no bytes may make the unpickler crash, hang, call anything, or describe a tensor outside of its storage.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "core/archive/pickle_reader.h"
#include "core/error.h"

namespace {

using welkin::archive::Pickle;
using welkin::archive::PickleKind;
using welkin::archive::PickleNode;

bool stays_inside(const Pickle& pickle, const PickleNode& tensor) {
  const auto& storage = pickle[tensor.items.at(0)];
  int64_t last = tensor.integer;
  for (size_t dim = 0; dim < tensor.shape.size(); ++dim) {
    if (tensor.shape[dim] == 0) return true;
    last += (tensor.shape[dim] - 1) * tensor.strides[dim];
  }
  return last >= 0 && last < storage.integer;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const Pickle pickle = welkin::archive::read_pickle(std::as_bytes(std::span(data, size)), "fuzz");
    if (pickle.bytes > size) std::abort();
    for (const PickleNode& node : pickle.nodes) {
      for (const auto item : node.items) {
        if (item >= pickle.nodes.size()) std::abort();
      }
      if (node.kind == PickleKind::Tensor && !stays_inside(pickle, node)) std::abort();
    }
  } catch (const welkin::DataError&) {  // the one legal way to refuse
  }
  return 0;
}
