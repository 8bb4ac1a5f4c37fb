// SPDX-License-Identifier: Apache-2.0
#include "train/device/memory_trace.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <iterator>
#include <string_view>

#include "core/archive/torch_writer.h"
#include "core/error.h"
#include "core/text.h"

namespace welkin::train {
namespace {

constexpr size_t kMostFrames = 4;

// The operators that run on this thread, the outermost first. The pointers stay valid: they are read while the operators run.
std::vector<const char*>& running_operators() {
  thread_local std::vector<const char*> names;
  return names;
}

std::unique_ptr<at::ObserverContext> operator_begins(const at::RecordFunction& function) {
  running_operators().push_back(function.name());
  return nullptr;
}

// The trace may have begun within the operator.
void operator_ends(const at::RecordFunction& /*function*/, at::ObserverContext* /*context*/) {
  if (!running_operators().empty()) running_operators().pop_back();
}

int64_t address_of(const void* block) { return std::bit_cast<int64_t>(block); }

int64_t wall_time_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

using Pickle = archive::TorchWriter;

void entry(Pickle& out, std::string_view key, std::string_view value) {
  out.text(key);
  out.text(value);
}

void entry(Pickle& out, std::string_view key, int64_t value) {
  out.text(key);
  out.integer(value);
}

void add_frames(Pickle& out, const std::vector<std::string>& names) {
  out.text("frames");
  out.begin_list();
  for (const std::string& name : names) {
    out.begin_dict();
    entry(out, "name", name);
    entry(out, "filename", "welkin");
    entry(out, "line", 0);
    out.end_dict();
  }
  out.end_list();
}

struct Change {
  std::string_view action;
  int64_t address, bytes, time_us;
};

void add_change(Pickle& out, const Change& change, const std::vector<std::string>& names) {
  out.begin_dict();
  entry(out, "action", change.action);
  entry(out, change.action == "oom" ? "device_free" : "addr", change.address);
  entry(out, "size", change.bytes);
  entry(out, "stream", 0);
  entry(out, "time_us", change.time_us);
  add_frames(out, names);
  out.end_dict();
}

// Each block is a segment of its own: the system's allocator has no segments to show.
void add_segment(Pickle& out, int64_t address, int64_t bytes, const std::vector<std::string>& names) {
  out.begin_dict();
  for (const auto& [key, value] : {std::pair<const char*, int64_t>{"device", 0},
                                   {"address", address},
                                   {"total_size", bytes},
                                   {"allocated_size", bytes},
                                   {"active_size", bytes},
                                   {"requested_size", bytes},
                                   {"stream", 0}}) {
    entry(out, key, value);
  }
  entry(out, "segment_type", bytes >= 1 << 20 ? "large" : "small");
  out.text("segment_pool_id");
  out.begin_tuple();
  out.integer(0);
  out.integer(0);
  out.end_tuple();
  add_frames(out, names);
  out.text("blocks");
  out.begin_list();
  out.begin_dict();
  for (const auto& [key, value] :
       {std::pair<const char*, int64_t>{"address", address}, {"size", bytes}, {"requested_size", bytes}}) {
    entry(out, key, value);
  }
  entry(out, "state", "active_allocated");
  add_frames(out, names);
  out.end_dict();
  out.end_list();
  out.end_dict();
}

}  // namespace

MemoryTrace::MemoryTrace(MemoryTraceOptions options) : options_(options) {
  operators_ = at::addGlobalCallback(at::RecordFunctionCallback(&operator_begins, &operator_ends)
                                         .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
  listen_to_cpu_memory(this);
}

MemoryTrace::~MemoryTrace() {
  listen_to_cpu_memory(nullptr);
  at::removeCallback(operators_);
}

int32_t MemoryTrace::label_here() {
  const std::vector<const char*>& names = running_operators();
  std::vector<std::string> frames;
  for (size_t i = 0; i < std::min(kMostFrames, names.size()); ++i) frames.emplace_back(names[names.size() - 1 - i]);
  const auto [found, is_new] = label_numbers_.try_emplace(join(frames, "\n"), static_cast<int32_t>(labels_.size()));
  if (is_new) labels_.push_back(std::move(frames));
  return found->second;
}

void MemoryTrace::add(const Event& event) {
  events_.push_back(event);
  if (events_.size() > options_.max_events) events_.pop_front();
}

// If memory runs out while a record is made, the record is given up.
void MemoryTrace::taken(const void* block, int64_t bytes) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    const Block here{bytes, label_here()};
    live_[address_of(block)] = here;
    add({Action::Taken, address_of(block), here, wall_time_us()});
  } catch (const std::bad_alloc&) {
  }
}

void MemoryTrace::given_back(const void* block) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    const auto found = live_.find(address_of(block));
    if (found == live_.end()) return;  // allocated before the trace began
    add({Action::GivenBack, found->first, found->second, wall_time_us()});
    live_.erase(found);
  } catch (const std::bad_alloc&) {
  }
}

void MemoryTrace::refused(int64_t bytes) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    add({Action::Refused, options_.limit_bytes - cpu_memory_allocated(), {bytes, label_here()}, wall_time_us()});
  } catch (const std::bad_alloc&) {
  }
}

void MemoryTrace::write(const std::filesystem::path& path) const {
  const std::lock_guard lock(mutex_);
  const std::vector<std::string> nothing;
  Pickle out;
  out.begin_dict();
  out.text("segments");
  out.begin_list();
  for (const auto& [address, block] : live_) add_segment(out, address, block.bytes, labels_.at(static_cast<size_t>(block.label)));
  out.end_list();
  out.text("device_traces");
  out.begin_list();
  out.begin_list();
  for (const Event& event : events_) {
    const std::vector<std::string>& names = labels_.at(static_cast<size_t>(event.block.label));
    const auto change = [&](std::string_view action) { return Change{action, event.address, event.block.bytes, event.time_us}; };
    if (event.action == Action::Taken) {
      add_change(out, change("segment_alloc"), nothing);
      add_change(out, change("alloc"), names);
    } else if (event.action == Action::GivenBack) {
      for (const char* action : {"free_requested", "free_completed", "segment_free"}) add_change(out, change(action), nothing);
    } else {
      add_change(out, change("oom"), names);
    }
  }
  out.end_list();
  out.end_list();
  out.end_dict();
  out.write_pickle(path);
}

}  // namespace welkin::train
