// SPDX-License-Identifier: Apache-2.0
#include "train/run/data_notes.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <sstream>
#include <utility>

#include "core/text.h"
#include "parallel/comm/collectives.h"

namespace welkin::train {
namespace {

at::Tensor bytes_tensor(const std::string& text) {
  at::Tensor bytes = at::empty({static_cast<int64_t>(text.size())}, at::kByte);
  std::memcpy(bytes.data_ptr(), text.data(), text.size());
  return bytes;
}

// The texts of all ranks one after the other, on every rank; each ends with "\n", so that none is empty.
std::string gathered_texts(const parallel::Group& group, const std::string& own) {
  at::Tensor lengths = at::zeros({group.size()}, at::kLong);
  lengths[group.group_rank()] = static_cast<int64_t>(own.size());
  lengths = parallel::all_reduce(group, lengths);
  const auto* begin = lengths.const_data_ptr<int64_t>();
  const at::Tensor all = parallel::all_gather(group, bytes_tensor(own), 0, {begin, begin + group.size()}).contiguous();
  return {static_cast<const char*>(all.data_ptr()), static_cast<size_t>(all.numel())};
}

}  // namespace

void DataNotes::add(const std::string& note) {
  if (world_.size() == 1) return log_.warning(note);
  waiting_.push_back(note);
}

void DataNotes::share() {
  if (world_.size() == 1) return;
  std::string own;
  for (std::string& note : std::exchange(waiting_, {})) {
    std::ranges::replace(note, '\n', ' ');
    own += note + "\n";
  }
  if (own.empty()) own.push_back('\n');
  std::istringstream texts(gathered_texts(world_.world_group(), own));
  if (!world_.is_main()) return;
  std::set<std::string> said;
  for (std::string note; std::getline(texts, note);) {
    if (!note.empty() && said.insert(note).second) log_.warning(note);
  }
}

void DataNotes::say_own(const std::function<void(const std::string&)>& say) {
  for (const std::string& note : std::exchange(waiting_, {})) say(note);
}

std::string first_text(const parallel::World& world, const std::string& own) {
  if (world.size() == 1) return own;
  std::istringstream texts(gathered_texts(world.world_group(), own + "\n"));
  for (std::string text; std::getline(texts, text);) {
    if (!text.empty()) return text;
  }
  return {};
}

// The largest number of skips of each sample on any rank; empty if all ranks agree: then it equals the smallest.
Agreement agree_on_skips(parallel::Group group) {
  return [group = std::move(group)](const std::vector<int64_t>& own) {
    const auto count = static_cast<int64_t>(own.size());
    at::Tensor both = at::empty({2 * count}, at::kLong);
    auto* values = both.mutable_data_ptr<int64_t>();
    for (int64_t i = 0; i < count; ++i) {
      values[i] = own[static_cast<size_t>(i)];
      values[count + i] = -own[static_cast<size_t>(i)];
    }
    const at::Tensor most = parallel::all_reduce(group, both, parallel::Reduction::Max);
    const auto* found = most.const_data_ptr<int64_t>();
    std::vector<int64_t> largest(found, found + count);
    bool alike = true;
    for (int64_t i = 0; i < count; ++i) alike = alike && found[i] == -found[count + i];
    if (alike) largest.clear();
    return largest;
  };
}

Agreement agreement_of(const config::RunConfig& config, const parallel::MeshGroups& groups) {
  constexpr auto kOfOneModel = parallel::Axis::Tp | parallel::kSampleParts;
  if (config.data.bad_samples != config::BadSample::Skip || groups.mesh().size(kOfOneModel) == 1) return {};
  return agree_on_skips(groups.along(kOfOneModel));
}

}  // namespace welkin::train
