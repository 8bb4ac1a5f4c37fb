// SPDX-License-Identifier: Apache-2.0
// The values of the store and the semantics of its calls, which are those of c10d::Store. Not thread-safe.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include "parallel/store/store_message.h"

namespace welkin::parallel {

class StoreTable {
 public:
  // The answer; nothing for a Get or Wait with missing keys. Refused for an invalid request.
  std::optional<StoreMessage> answer(const StoreMessage& request);

 private:
  bool has_all(const std::vector<std::string>& keys) const;
  StoreMessage add(const std::string& key, int64_t number);
  StoreMessage compare_set(const std::vector<std::string>& texts);

  std::unordered_map<std::string, std::string> values_;
};

}  // namespace welkin::parallel
