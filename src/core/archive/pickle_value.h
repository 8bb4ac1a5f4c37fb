// SPDX-License-Identifier: Apache-2.0
// The values of a PyTorch pickle, as plain data. Values refer to each other by number in one vector. A pickle may share values
// and may even contain itself, so code that walks it counts its steps.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"

namespace welkin::archive {

using PickleId = uint32_t;

enum class PickleKind : uint8_t {
  None,
  Bool,
  Int,
  BigInt,  // more than 64 bits; `text` holds its little-endian bytes
  Float,
  Text,
  Bytes,
  List,       // and sets
  Tuple,      // and torch.Size
  Dict,       // and OrderedDict; `items` holds key, value, key, value, ...
  Global,     // `text` is "module name"
  Storage,    // `text` is its key, `integer` its number of elements
  Tensor,     // `items` holds its storage, `integer` its offset in elements
  NumpyType,  // `text` is numpy's name, as "f8"
};

struct PickleNode {
  PickleKind kind = PickleKind::None;
  Dtype dtype = Dtype::F32;  // Storage, Tensor
  int64_t integer = 0;       // Bool, Int, Storage, Tensor
  double number = 0;         // Float
  std::string text = {};
  std::vector<PickleId> items = {};
  std::vector<int64_t> shape = {}, strides = {};  // Tensor; strides in elements, none negative
};

struct Pickle {
  std::vector<PickleNode> nodes;
  PickleId root = 0;
  uint64_t bytes = 0;  // of the pickle itself; the bytes behind it are not its own

  const PickleNode& operator[](PickleId id) const { return nodes[id]; }
  const PickleNode& top() const { return nodes[root]; }
  // The value of a text key; nullptr when `dict` is no Dict or has no such key.
  const PickleNode* find(const PickleNode& dict, std::string_view key) const;
};

}  // namespace welkin::archive
