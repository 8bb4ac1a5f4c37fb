// SPDX-License-Identifier: Apache-2.0
// The stack machine behind read_pickle(). Internal to the pickle_*.cpp here.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "core/archive/byte_cursor.h"
#include "core/archive/pickle_globals.h"
#include "core/archive/pickle_value.h"

namespace welkin::archive {

class Unpickler {
 public:
  Unpickler(std::span<const std::byte> bytes, std::string_view source) : source_(source), cursor_(bytes, "pickle", source) {}

  Pickle run();

 private:
  // Each runs one group of operations; false: the operation is in another group (unpickler.cpp).
  bool run_constant(uint8_t operation);
  bool run_text(uint8_t operation);
  bool run_container(uint8_t operation);
  bool run_stack(uint8_t operation);
  bool run_memo(uint8_t operation);
  bool run_call(uint8_t operation);

  // Results of calls (pickle_calls.cpp). `arguments` is the number of a tuple.
  void push_global(std::string_view module, std::string_view name);
  void push_storage();
  void call();
  void build();
  PickleNode called(PickleCall callee, const PickleNode& arguments);
  PickleNode rebuilt_tensor(const PickleNode& arguments, bool has_dtype);
  void fill_tensor(PickleNode& tensor, const PickleNode& storage, const PickleNode& shape, const PickleNode& strides) const;
  PickleNode dict_of(const PickleNode& arguments) const;
  PickleNode list_of(const PickleNode& arguments) const;
  PickleNode numpy_scalar(const PickleNode& arguments) const;
  PickleNode encoded(const PickleNode& arguments) const;
  const PickleNode& argument(const PickleNode& arguments, size_t index, PickleKind kind) const;
  std::vector<int64_t> integers(const PickleNode& tuple) const;

  // The stack. References into nodes_ end with the next push.
  [[noreturn]] void refuse(std::string_view why, std::string_view remedy = {}) const;
  void push(PickleNode node);
  void push_existing(PickleId id);
  PickleId pop();
  PickleId top() const;
  std::vector<PickleId> pop_to_mark();
  void push_text(PickleKind kind, uint64_t bytes);
  void push_sequence(PickleKind kind, std::vector<PickleId> items);
  void append_items(const std::vector<PickleId>& items, PickleKind kind);
  void push_long(uint64_t bytes);
  void remember(uint64_t slot);
  void recall(uint64_t slot);
  std::string_view line();

  std::string_view source_;
  ByteCursor cursor_;
  std::vector<PickleNode> nodes_;
  std::vector<PickleId> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, PickleId> memo_;
  uint64_t num_items_ = 0;  // over all containers
  uint8_t protocol_ = 0;
};

}  // namespace welkin::archive
