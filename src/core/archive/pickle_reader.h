// SPDX-License-Identifier: Apache-2.0
// A restricted unpickler: it builds plain values and runs nothing. A pickle is a program that may call any function. Here the
// few calls with which PyTorch describes tensors are interpreted (pickle_globals.h has the list). Every other name is refused,
// and all sizes have limits.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "core/archive/pickle_value.h"

namespace welkin::archive {

inline constexpr uint64_t kMaxPickleBytes = uint64_t{256} << 20;  // bytes
inline constexpr size_t kMaxPickleValues = size_t{1} << 21;       // above 100,000 tensors with their optimizer's state
inline constexpr size_t kMaxPickleDims = 64;

// The first pickle in `bytes`. Storages are named, not read. Throws DataError with the position in the pickle and `source`.
Pickle read_pickle(std::span<const std::byte> bytes, std::string_view source);

}  // namespace welkin::archive
