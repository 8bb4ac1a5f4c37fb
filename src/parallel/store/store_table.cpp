// SPDX-License-Identifier: Apache-2.0
#include "parallel/store/store_table.h"

#include <algorithm>
#include <charconv>

#include "core/text.h"

namespace welkin::parallel {
namespace {

StoreMessage refused(std::string why) { return {.kind = StoreCall::Refused, .texts = {std::move(why)}}; }

// Number of texts of a request; -1: any number.
int texts_of(StoreCall call) {
  switch (call) {
    case StoreCall::Set:
      return 2;
    case StoreCall::Get:
    case StoreCall::Add:
    case StoreCall::Delete:
      return 1;
    case StoreCall::CompareSet:
      return 3;
    case StoreCall::Count:
      return 0;
    default:
      return -1;
  }
}

}  // namespace

bool StoreTable::has_all(const std::vector<std::string>& keys) const {
  return std::all_of(keys.begin(), keys.end(), [&](const std::string& key) { return values_.count(key) > 0; });
}

StoreMessage StoreTable::add(const std::string& key, int64_t number) {
  const std::string& old = values_[key];
  int64_t sum = 0;
  const auto [end, error] = std::from_chars(old.data(), old.data() + old.size(), sum);
  if (!old.empty() && (error != std::errc() || end != old.data() + old.size())) return refused(cat("not a number: key=", key));
  if (__builtin_add_overflow(sum, number, &sum)) return refused(cat("the sum is beyond 64 bits: key=", key));
  values_[key] = std::to_string(sum);
  return {.number = sum};
}

// Sets the new value if the key has the expected one, or is absent and none is expected. Else returns the present or expected.
StoreMessage StoreTable::compare_set(const std::vector<std::string>& texts) {
  const auto found = values_.find(texts[0]);
  const bool is_expected = found != values_.end() ? found->second == texts[1] : texts[1].empty();
  if (is_expected) return {.texts = {values_[texts[0]] = texts[2]}};
  return {.texts = {found != values_.end() ? found->second : texts[1]}};
}

std::optional<StoreMessage> StoreTable::answer(const StoreMessage& request) {
  const std::vector<std::string>& texts = request.texts;
  const int wanted = texts_of(request.kind);
  if (wanted >= 0 && texts.size() != static_cast<size_t>(wanted)) return refused("another number of texts");
  switch (request.kind) {
    case StoreCall::Set:
      values_[texts[0]] = texts[1];
      return StoreMessage{};
    case StoreCall::Get:
      if (!has_all(texts)) return std::nullopt;
      return StoreMessage{.texts = {values_.at(texts[0])}};
    case StoreCall::Wait:
      if (!has_all(texts)) return std::nullopt;
      return StoreMessage{};
    case StoreCall::Check:
      return StoreMessage{.number = has_all(texts) ? 1 : 0};
    case StoreCall::Add:
      return add(texts[0], request.number);
    case StoreCall::CompareSet:
      return compare_set(texts);
    case StoreCall::Delete:
      return StoreMessage{.number = static_cast<int64_t>(values_.erase(texts[0]))};
    case StoreCall::Count:
      return StoreMessage{.number = static_cast<int64_t>(values_.size())};
    default:
      return refused("not a request");
  }
}

}  // namespace welkin::parallel
