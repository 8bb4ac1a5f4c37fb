// SPDX-License-Identifier: Apache-2.0
// The operations of a pickle, protocols 2 to 5 (Python's Lib/pickletools.py describes them).
#include "core/archive/unpickler.h"

#include <bit>
#include <utility>

#include "core/archive/pickle_reader.h"

namespace welkin::archive {
namespace {

constexpr uint8_t kMark = '(', kStop = '.', kProtocol = 0x80, kFrame = 0x95;
constexpr size_t kDeepestStack = size_t{1} << 20;
constexpr size_t kMostMarks = 10'000;  // open containers: how deep values are nested
constexpr size_t kMostMemos = 2 * kMaxPickleValues;
constexpr uint64_t kMostItems = uint64_t{1} << 24;
constexpr uint64_t kLongestLine = 512;
constexpr uint64_t kLongestInteger = 64;  // bytes

}  // namespace

void Unpickler::refuse(std::string_view why, std::string_view remedy) const {
  throw DataError("pickle", cat(why, ", at byte=", cursor_.position(), ", file=", source_),
                  remedy.empty() ? "The file is damaged or malicious: save it again in PyTorch" : remedy);
}

Pickle Unpickler::run() {
  for (;;) {
    const auto operation = cursor_.little<uint8_t>();
    if (operation == kStop) break;
    if (operation == kProtocol) {
      protocol_ = cursor_.little<uint8_t>();
      if (protocol_ < 2 || protocol_ > 5) refuse(cat("unknown protocol of pickle: protocol=", int{protocol_}));
    } else if (operation == kFrame) {
      cursor_.little<uint64_t>();  // a hint for readers of streams
    } else if (!run_constant(operation) && !run_text(operation) && !run_container(operation) && !run_stack(operation) &&
               !run_memo(operation) && !run_call(operation)) {
      refuse(cat("an operation that is not allowed: opcode=", int{operation}),
             "Nothing of it was run. Save it in PyTorch 1.0 or later with the default pickle_protocol");
    }
  }
  if (stack_.size() != 1 || !marks_.empty()) refuse(cat("it ends with something else than one value: values=", stack_.size()));
  return {.nodes = std::move(nodes_), .root = stack_.back(), .bytes = cursor_.position()};
}

bool Unpickler::run_constant(uint8_t operation) {
  const auto integer = [this](int64_t value) {
    push({.kind = PickleKind::Int, .integer = value});
    return true;
  };
  switch (operation) {
    case 'N':
      push({});
      return true;
    case 0x88:
    case 0x89:
      push({.kind = PickleKind::Bool, .integer = operation == 0x88});
      return true;
    case 'J':
      return integer(cursor_.little<int32_t>());
    case 'K':
      return integer(cursor_.little<uint8_t>());
    case 'M':
      return integer(cursor_.little<uint16_t>());
    case 0x8a:
      push_long(cursor_.little<uint8_t>());
      return true;
    case 0x8b:
      push_long(cursor_.little<uint32_t>());
      return true;
    case 'G': {  // big endian
      const auto bits = __builtin_bswap64(cursor_.little<uint64_t>());
      push({.kind = PickleKind::Float, .number = std::bit_cast<double>(bits)});
      return true;
    }
    default:
      return false;
  }
}

bool Unpickler::run_text(uint8_t operation) {
  switch (operation) {
    case 'X':
    case 'T':
      push_text(PickleKind::Text, cursor_.little<uint32_t>());
      return true;
    case 0x8c:
    case 'U':
      push_text(PickleKind::Text, cursor_.little<uint8_t>());
      return true;
    case 0x8d:
      push_text(PickleKind::Text, cursor_.little<uint64_t>());
      return true;
    case 'B':
      push_text(PickleKind::Bytes, cursor_.little<uint32_t>());
      return true;
    case 'C':
      push_text(PickleKind::Bytes, cursor_.little<uint8_t>());
      return true;
    case 0x8e:
    case 0x96:
      push_text(PickleKind::Bytes, cursor_.little<uint64_t>());
      return true;
    default:
      return false;
  }
}

bool Unpickler::run_container(uint8_t operation) {
  switch (operation) {
    case ')':
      push_sequence(PickleKind::Tuple, {});
      return true;
    case 't':
      push_sequence(PickleKind::Tuple, pop_to_mark());
      return true;
    case 0x85:
    case 0x86:
    case 0x87: {
      std::vector<PickleId> items(static_cast<size_t>(operation - 0x84));
      for (size_t i = items.size(); i-- > 0;) items[i] = pop();
      push_sequence(PickleKind::Tuple, std::move(items));
      return true;
    }
    case ']':
    case 0x8f:
      push_sequence(PickleKind::List, {});
      return true;
    case 'l':
    case 0x91:
      push_sequence(PickleKind::List, pop_to_mark());
      return true;
    case '}':
      push_sequence(PickleKind::Dict, {});
      return true;
    case 'd':
      push_sequence(PickleKind::Dict, pop_to_mark());
      return true;
    case 'a':
      append_items({pop()}, PickleKind::List);
      return true;
    case 'e':
    case 0x90:
      append_items(pop_to_mark(), PickleKind::List);
      return true;
    case 's': {
      const PickleId value = pop(), key = pop();
      append_items({key, value}, PickleKind::Dict);
      return true;
    }
    case 'u':
      append_items(pop_to_mark(), PickleKind::Dict);
      return true;
    default:
      return false;
  }
}

bool Unpickler::run_stack(uint8_t operation) {
  switch (operation) {
    case kMark:
      if (marks_.size() == kMostMarks) refuse(cat("values are nested too deeply: limit=", kMostMarks));
      marks_.push_back(stack_.size());
      return true;
    case '0':
      if (!marks_.empty() && marks_.back() == stack_.size()) {
        marks_.pop_back();
      } else {
        pop();
      }
      return true;
    case '1':
      pop_to_mark();
      return true;
    case '2':
      push_existing(top());
      return true;
    default:
      return false;
  }
}

bool Unpickler::run_memo(uint8_t operation) {
  switch (operation) {
    case 'q':
      remember(cursor_.little<uint8_t>());
      return true;
    case 'r':
      remember(cursor_.little<uint32_t>());
      return true;
    case 0x94:
      remember(memo_.size());
      return true;
    case 'h':
      recall(cursor_.little<uint8_t>());
      return true;
    case 'j':
      recall(cursor_.little<uint32_t>());
      return true;
    default:
      return false;
  }
}

bool Unpickler::run_call(uint8_t operation) {
  switch (operation) {
    case 'c': {
      const std::string module(line());
      push_global(module, line());
      return true;
    }
    case 0x93: {
      const std::string name = nodes_[pop()].text;
      const std::string module = nodes_[pop()].text;
      push_global(module, name);
      return true;
    }
    case 'Q':
      push_storage();
      return true;
    case 'R':
    case 0x81:
      call();
      return true;
    case 'b':
      build();
      return true;
    default:
      return false;
  }
}

void Unpickler::push(PickleNode node) {
  if (nodes_.size() == kMaxPickleValues) refuse(cat("too many values: limit=", kMaxPickleValues));
  nodes_.push_back(std::move(node));
  push_existing(static_cast<PickleId>(nodes_.size() - 1));
}

void Unpickler::push_existing(PickleId id) {
  if (stack_.size() == kDeepestStack) refuse(cat("the stack grows too deep: limit=", kDeepestStack));
  stack_.push_back(id);
}

PickleId Unpickler::top() const {
  if (stack_.empty() || (!marks_.empty() && marks_.back() == stack_.size())) refuse("a value is taken from an empty stack");
  return stack_.back();
}

PickleId Unpickler::pop() {
  const PickleId id = top();
  stack_.pop_back();
  return id;
}

std::vector<PickleId> Unpickler::pop_to_mark() {
  if (marks_.empty()) refuse("a mark is missing");
  const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  std::vector<PickleId> items(begin, stack_.end());
  stack_.erase(begin, stack_.end());
  marks_.pop_back();
  return items;
}

void Unpickler::push_text(PickleKind kind, uint64_t bytes) { push({.kind = kind, .text = std::string(cursor_.text(bytes))}); }

void Unpickler::push_sequence(PickleKind kind, std::vector<PickleId> items) {
  push({.kind = kind});
  append_items(items, kind);
}

// Appends to the container on top of the stack.
void Unpickler::append_items(const std::vector<PickleId>& items, PickleKind kind) {
  PickleNode& container = nodes_[top()];
  if (container.kind != kind) refuse("items are added to something that is no container of this kind");
  if (kind == PickleKind::Dict && items.size() % 2 != 0) refuse("a key without a value");
  num_items_ += items.size();
  if (num_items_ > kMostItems) refuse(cat("too many items: limit=", kMostItems));
  container.items.insert(container.items.end(), items.begin(), items.end());
}

// Two's complement of any length.
void Unpickler::push_long(uint64_t bytes) {
  if (bytes > kLongestInteger) refuse(cat("an integer is too long: bytes=", bytes, ", limit=", kLongestInteger));
  const std::string_view digits = cursor_.text(bytes);
  if (bytes > sizeof(int64_t)) return push({.kind = PickleKind::BigInt, .text = std::string(digits)});
  uint64_t value = !digits.empty() && (digits.back() & 0x80) != 0 ? ~uint64_t{0} : 0;
  for (size_t i = digits.size(); i-- > 0;) value = (value << 8) | static_cast<uint8_t>(digits[i]);
  push({.kind = PickleKind::Int, .integer = static_cast<int64_t>(value)});
}

void Unpickler::remember(uint64_t slot) {
  if (memo_.size() == kMostMemos) refuse(cat("too many stored values: limit=", kMostMemos));
  memo_[slot] = top();
}

void Unpickler::recall(uint64_t slot) {
  const auto found = memo_.find(slot);
  if (found == memo_.end()) refuse(cat("a value is used that was not stored: memo=", slot));
  push_existing(found->second);
}

// The text up to a line feed.
std::string_view Unpickler::line() {
  ByteCursor ahead = cursor_;
  uint64_t length = 0;
  while (ahead.little<char>() != '\n') {
    if (++length > kLongestLine) refuse(cat("a name is too long: limit=", kLongestLine));
  }
  const std::string_view text = cursor_.text(length);
  cursor_.take(1);
  return text;
}

Pickle read_pickle(std::span<const std::byte> bytes, std::string_view source) { return Unpickler(bytes, source).run(); }

const PickleNode* Pickle::find(const PickleNode& dict, std::string_view key) const {
  if (dict.kind != PickleKind::Dict) return nullptr;
  for (size_t i = 0; i < dict.items.size(); i += 2) {
    const PickleNode& name = nodes[dict.items[i]];
    if (name.kind == PickleKind::Text && name.text == key) return &nodes[dict.items[i + 1]];
  }
  return nullptr;
}

}  // namespace welkin::archive
