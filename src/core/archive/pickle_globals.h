// SPDX-License-Identifier: Apache-2.0
// The names that a pickle may mention, with the meaning of each here. Nothing that is not in this table is accepted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/dtype.h"

namespace welkin::archive {

enum class PickleCall : uint8_t {
  Value,             // a constant or a class that is mentioned only
  Dict,              // OrderedDict, defaultdict, Counter
  List,              // set, frozenset, list
  Tuple,             // torch.Size
  Text,              // torch.device
  RebuildTensor,     // storage, offset, shape, strides, ...
  RebuildTensorV3,   // the same, with a dtype of its own
  RebuildParameter,  // a tensor, ...
  NumpyType,
  NumpyScalar,
  Encode,  // text to bytes, how old pickles hold bytes
};

// The call that the global "module name" may make; nullopt: it is refused.
std::optional<PickleCall> allowed_call(std::string_view global);
// The element type of a storage class ("torch FloatStorage") or of a dtype ("torch float32").
std::optional<Dtype> storage_dtype(std::string_view global);
std::optional<Dtype> torch_dtype(std::string_view global);

// Storages without an element type: their tensors bring it, their size counts bytes.
inline constexpr std::string_view kUntypedStorage = "torch.storage UntypedStorage";

}  // namespace welkin::archive
