// SPDX-License-Identifier: Apache-2.0
// libFuzzer: no bytes may make the reader of .pt files (zip and legacy) crash, hang, or read a tensor from outside of the file.
#include <cstdint>
#include <span>

#include "core/archive/torch_file.h"
#include "core/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using welkin::archive::PickleKind;
  try {
    const welkin::archive::TorchContent file(std::as_bytes(std::span(data, size)), "fuzz");
    int left = 8;  // tensors are large next to what describes them
    for (const auto& node : file.pickle().nodes) {
      if (node.kind == PickleKind::Tensor && left-- > 0) file.row_major(node);
    }
  } catch (const welkin::DataError&) {  // the one legal way to refuse
  }
  return 0;
}
