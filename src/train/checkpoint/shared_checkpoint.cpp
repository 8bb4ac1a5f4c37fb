// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/shared_checkpoint.h"

#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <unistd.h>

#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "parallel/comm/collectives.h"
#include "train/checkpoint/aside_folder.h"
#include "train/checkpoint/format/tensor_pieces.h"
#include "train/checkpoint/slow_writes.h"
#include "train/checkpoint/staged_tensors.h"

namespace welkin::train {
namespace {

namespace fs = std::filesystem;

constexpr char kTrouble = '!';  // first character of the text of a rank that has failed

// State that the first rank has prepared; without an index there is nothing to write.
struct Begun {
  std::optional<CheckpointIndex> index;
  std::unique_ptr<AsideFolder> aside;
  std::exception_ptr failure;
};

void begin_on_first(Begun& begun, const fs::path& folder, const std::function<std::optional<CheckpointIndex>()>& make_index) {
  try {
    begun.index = make_index();
    if (!begun.index) return;
    try {
      begun.aside = std::make_unique<AsideFolder>(folder);
    } catch (const DataError& error) {
      throw cannot_be_saved(folder, begun.index->position.iteration, error.what());
    }
  } catch (const CommError&) {
    throw;  // nobody is there to tell
  } catch (const std::exception&) {
    begun.failure = std::current_exception();
    begun.aside.reset();
  }
}

// Writes this rank's files and returns their index as JSON, or kTrouble and the error.
std::string write_own(const fs::path& folder, const RankTensors& own, int64_t rank) {
  CheckpointIndex index;
  try {
    FilesTogether files;
    if (rank == 0) write_files(files, folder, index, own.whole);
    write_files(files, folder, index, own.pieces, rank);
    files.finish();
    return to_json(index);
  } catch (const std::exception& error) {
    return cat(kTrouble, error.what());
  }
}

// Checks that the files of a rank that writes into this folder are visible here.
void check_seen(const CheckpointIndex& part, const fs::path& folder, size_t rank) {
  for (const auto& [name, file] : part.files) {
    std::error_code missing;
    if (fs::file_size(folder / name, missing) == file.bytes && !missing) continue;
    throw DataError(cat("rank ", rank), cat("its file is not seen by the first rank: path=", (folder / name).string()),
                    "Choose an expdir on a file system that all ranks share");
  }
}

// Returns the names of files in this folder.
template <typename IsHere>
std::vector<std::string> merge(CheckpointIndex& index, const std::vector<std::string>& texts, const fs::path& folder,
                               const IsHere& is_here) {
  std::vector<std::string> names;
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    if (texts[rank].starts_with(kTrouble)) throw DataError(cat("rank ", rank), texts[rank].substr(1), "See that rank's disk");
    const CheckpointIndex part = parse_checkpoint_index(texts[rank], cat("rank ", rank));
    add_records(index, part);
    if (!is_here(rank)) continue;
    check_seen(part, folder, rank);
    for (const auto& [name, file] : part.files) names.push_back(name);
  }
  finish_records(index);
  return names;
}

// Called on the first rank of a node other than the run's first.
std::unique_ptr<AsideFolder> begin_on_leader(const fs::path& folder) {
  try {
    return std::make_unique<AsideFolder>(folder);
  } catch (const DataError&) {
    return nullptr;
  }
}

}  // namespace

int64_t told_by_first(const parallel::Group& world, int64_t number) {
  const at::Tensor value = at::full({1}, number, at::kLong);
  parallel::broadcast(world, value, 0);
  return value.item<int64_t>();
}

std::unique_ptr<SharedCheckpoint> SharedCheckpoint::begin(const parallel::Group& world, const fs::path& folder,
                                                          const std::function<std::optional<CheckpointIndex>()>& make_index) {
  Begun begun;
  if (world.group_rank() == 0) begin_on_first(begun, folder, make_index);
  const int64_t writer = told_by_first(world, begun.aside ? int64_t{getpid()} : -1);
  if (begun.failure) std::rethrow_exception(begun.failure);
  if (writer < 0) return nullptr;
  return std::make_unique<SharedCheckpoint>(folder, std::move(begun.index), std::move(begun.aside), writer, world.group_rank());
}

// Every rank learns the leader of each rank, and the process that writes there.
std::unique_ptr<SharedCheckpoint> SharedCheckpoint::begin_on_nodes(
    const parallel::Group& world, const fs::path& folder, const std::function<std::optional<CheckpointIndex>()>& make_index,
    int64_t leader) {
  auto checkpoint = begin(world, folder, make_index);
  if (!checkpoint) return nullptr;
  const int64_t rank = world.group_rank();
  if (rank == leader && rank != 0) checkpoint->own_aside_ = begin_on_leader(folder);
  const int64_t writer = checkpoint->own_aside_ ? int64_t{getpid()} : -1;
  const parallel::Lengths pairs(static_cast<size_t>(world.size()), 2);
  const at::Tensor all = parallel::all_gather(world, at::tensor({leader, writer}, at::kLong), 0, pairs);
  const auto* const told = all.const_data_ptr<int64_t>();
  for (int64_t other = 0; other < world.size(); ++other) checkpoint->leaders_.push_back(told[2 * other]);
  checkpoint->aside_ = aside_path(folder, told[2 * leader + 1]);
  return checkpoint;
}

SharedCheckpoint::SharedCheckpoint(fs::path folder, std::optional<CheckpointIndex> index, std::unique_ptr<AsideFolder> own_aside,
                                   int64_t writer, int64_t rank)
    : folder_(std::move(folder)),
      aside_(aside_path(folder_, writer)),
      index_(std::move(index)),
      own_aside_(std::move(own_aside)),
      rank_(rank) {}

void SharedCheckpoint::write(const RankTensors& own) { written_ = write_own(aside_, own, rank_); }

void SharedCheckpoint::fail(const std::string& reason) { written_ = cat(kTrouble, reason); }

// On nodes each leader makes the index of all, from the same texts as the first rank, so that the bytes are equal.
void SharedCheckpoint::exchange(const parallel::Group& world) {
  texts_ = texts_of_all(world, written_);
  if (leaders_.empty()) return;
  const std::string base = texts_of_all(world, index_ ? to_json(*index_) : "-").front();
  if (publishes()) index_ = parse_checkpoint_index(base, "rank 0");
}

void SharedCheckpoint::publish() {
  const auto is_here = [this](size_t rank) { return leaders_.empty() || leaders_[rank] == rank_; };
  try {
    std::vector<std::string> names = merge(*index_, texts_, aside_, is_here);
    names.emplace_back("index.json");
    if (!leaders_.empty()) node_files_ = std::move(names);
    write_file_atomically(aside_ / "index.json", to_json(*index_));
    publish_over(aside_, folder_);
  } catch (const DataError& error) {
    throw cannot_be_saved(folder_, index_->position.iteration, error.what());
  }
}

void write_shared_checkpoint(const parallel::Group& world, const fs::path& folder, const RankTensors& own,
                             const std::function<std::optional<CheckpointIndex>()>& make_index) {
  const std::unique_ptr<SharedCheckpoint> checkpoint = SharedCheckpoint::begin(world, folder, make_index);
  if (!checkpoint) return;
  write_together(world, [&] { checkpoint->write(own); });
  checkpoint->exchange(world);
  write_together(world, [&] {
    if (world.group_rank() == 0) checkpoint->publish();
  });
}

Checkpoint open_shared_checkpoint(const parallel::Group& world, const fs::path& folder) {
  std::optional<Checkpoint> own;
  std::string told = "whole";
  try {
    own.emplace(folder, OpeningCheck::Sizes);
    own->verify_share(world.group_rank(), world.size());
  } catch (const CheckpointError& error) {
    if (world.size() == 1) throw;
    told = cat(kTrouble, error.what());
  }
  for (const std::string& text : texts_of_all(world, told)) {
    if (!text.starts_with(kTrouble)) continue;
    throw CheckpointError("checkpoint", cat("not every rank can read it: path=", folder.string(), ", reason=", text.substr(1)),
                          "Use another checkpoint of the run");
  }
  return *std::move(own);
}

std::vector<int64_t> steps_of_first(const parallel::Group& world, const std::vector<int64_t>& steps) {
  std::vector<int64_t> told;
  const int64_t num = told_by_first(world, static_cast<int64_t>(steps.size()));
  for (int64_t i = 0; i < num; ++i) {
    told.push_back(told_by_first(world, world.group_rank() == 0 ? steps[static_cast<size_t>(i)] : 0));
  }
  return told;
}

}  // namespace welkin::train
