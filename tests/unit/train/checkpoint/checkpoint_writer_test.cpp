// SPDX-License-Identifier: Apache-2.0
// Checkpoints that are written beside training: the files, what is written while values change, errors and places.
#include "train/checkpoint/checkpoint_writer.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "core/error.h"
#include "core/fault/write_watch.h"
#include "core/file.h"
#include "parallel/comm/world.h"
#include "parallel/shard/model_parallel_gradients.h"
#include "scratch_folder.h"
#include "train/checkpoint/checkpoint_store.h"

namespace welkin::train {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct WriterBed {
  parallel::World world;  // one process
  parallel::ParamTable table;
  parallel::MeshGroups groups;
  parallel::Group alone;
  std::vector<std::string> reports;
  at::Tensor weight = at::arange(6, at::kFloat).view({2, 3}).t(), count = at::full({}, int64_t{5}, at::kLong);

  TensorLayout layout() const { return {.table = table, .groups = groups, .shards = alone}; }
  std::vector<CheckpointGroup> state() const {
    return {{.name = "model", .tensors = {{"a.weight", weight}}}, {.name = "state", .tensors = {{"updates", count}}}};
  }
  WriterOptions options(bool copies = true, bool skips = false) {
    return {.copies = copies, .skips = skips, .report = [this](const std::string& error) { reports.push_back(error); }};
  }
  SaveTask task(int64_t step, std::vector<CheckpointPlace*> places) const {
    CheckpointIndex index;
    index.position = {.iteration = step, .epoch = 0, .step_in_epoch = step};
    return {.groups = state(), .index = index, .places = std::move(places)};
  }
};

std::string files_of(const fs::path& folder) {
  std::string all;
  for (const char* name : {"model.safetensors", "state.safetensors", "index.json"}) all += read_file(folder / name, 1 << 20);
  return all;
}

// A file in the way of a folder stands for what the system refuses.
void put_file_at(const fs::path& path) { std::ofstream(path) << "x"; }

TEST(CheckpointWriter, FilesBesideTrainingAreThoseOfAWriterThatWaits) {
  const ScratchFolder folder;
  WriterBed bed;
  CheckpointPlace waits{.name = {}, .store = CheckpointStore(folder / "waits")};
  CheckpointPlace beside{.name = {}, .store = CheckpointStore(folder / "beside")};
  CheckpointWriter one(bed.world.world_group(), bed.options(false)), other(bed.world.world_group(), bed.options());
  one.save(bed.task(3, {&waits}), bed.layout());
  other.save(bed.task(3, {&beside}), bed.layout());
  bed.weight.fill_(7);  // the next step
  bed.count.fill_(6);
  other.finish();
  EXPECT_EQ(files_of(waits.store.path_of(3)), files_of(beside.store.path_of(3)));
  EXPECT_EQ(one.summary(), "");
  EXPECT_THAT(other.summary(), HasSubstr("Checkpoints written beside training: 1. The copy of "));
  EXPECT_GT(other.save_seconds(), 0);
}

// Of the values as they were, though training has gone on.
TEST(CheckpointWriter, WritesWhatIsVotedFor) {
  const ScratchFolder folder;
  WriterBed bed;
  CheckpointPlace waits{.name = {}, .store = CheckpointStore(folder / "waits")};
  CheckpointPlace beside{.name = {}, .store = CheckpointStore(folder / "beside")};
  CheckpointWriter one(bed.world.world_group(), bed.options(false)), other(bed.world.world_group(), bed.options());
  one.save(bed.task(3, {&waits}), bed.layout());
  std::vector<int64_t> voted;
  const std::vector<int64_t> expected{parallel::hash_of_values(bed.weight)};
  SaveTask task = bed.task(3, {&beside});
  task.vote = {.values = {{"a.weight", bed.weight}}, .compare = [&](const std::vector<int64_t>& hashes) { voted = hashes; }};
  other.save(std::move(task), bed.layout());
  bed.weight.fill_(7);  // the next step
  bed.count.fill_(6);
  while (!other.has_written()) std::this_thread::yield();
  other.collect(/*all_have_written=*/false);
  EXPECT_TRUE(voted.empty());
  other.collect(/*all_have_written=*/true);
  EXPECT_EQ(voted, expected);
  other.finish();
  EXPECT_EQ(files_of(waits.store.path_of(3)), files_of(beside.store.path_of(3)));
}

TEST(CheckpointWriter, WhatIsVotedDownIsNotWritten) {
  const ScratchFolder folder;
  WriterBed bed;
  CheckpointPlace place{.name = {}, .store = CheckpointStore(folder / "run")};
  for (const bool copies : {true, false}) {
    CheckpointWriter writer(bed.world.world_group(), bed.options(copies));
    SaveTask task = bed.task(3, {&place});
    task.vote = {.values = {{"a.weight", bed.weight}},
                 .compare = [](const std::vector<int64_t>&) { throw CommError("test", "they differ", "Stop"); }};
    if (copies) {
      writer.save(std::move(task), bed.layout());
      EXPECT_THROW(writer.finish(), CommError);
    } else {
      EXPECT_THROW(writer.save(std::move(task), bed.layout()), CommError);
    }
    writer.finish();
    EXPECT_TRUE(place.store.steps().empty());
  }
}

TEST(CheckpointWriter, UsesTheSameMemoryAgain) {
  const ScratchFolder folder;
  WriterBed bed;
  HostCopy copy(c10::kCPU);
  const RankTensors first = copy.take({.whole = bed.state(), .pieces = {}});
  const void* memory = first.whole[0].tensors[0].value.const_data_ptr();
  bed.weight.fill_(2);
  const RankTensors second = copy.take({.whole = bed.state(), .pieces = {}});
  EXPECT_EQ(second.whole[0].tensors[0].value.const_data_ptr(), memory);
  EXPECT_TRUE(second.whole[0].tensors[0].value.is_contiguous());
  EXPECT_EQ(copy.bytes(), 6 * 4 + 8);
}

TEST(CheckpointWriter, AnErrorIsReportedBetweenLaterSteps) {
  const ScratchFolder folder;
  WriterBed bed;
  put_file_at(folder / "full");
  CheckpointPlace place{.name = {}, .store = CheckpointStore(folder / "full" / "checkpoints")};
  CheckpointWriter writer(bed.world.world_group(), bed.options());
  writer.save(bed.task(1, {&place}), bed.layout());
  writer.finish();
  ASSERT_EQ(bed.reports.size(), 1u);
  EXPECT_THAT(bed.reports[0], HasSubstr((folder / "full").string()));
  EXPECT_THROW(writer.save_now(bed.task(1, {&place}), bed.layout()), Error);
}

TEST(CheckpointWriter, APlaceThatRefusesLeavesTheOthers) {
  const ScratchFolder folder;
  WriterBed bed;
  put_file_at(folder / "full");
  CheckpointPlace bad{.name = "fast", .store = CheckpointStore(folder / "full" / "run")};
  CheckpointPlace good{.name = {}, .store = CheckpointStore(folder / "run"), .keep = 2, .keep_every = 2};
  CheckpointWriter writer(bed.world.world_group(), bed.options());
  for (const int64_t step : {1, 2, 3, 4, 5}) writer.save(bed.task(step, {&good, &bad}), bed.layout());
  writer.finish();
  EXPECT_EQ(bed.reports.size(), 5u);
  EXPECT_THAT(good.store.steps(), ElementsAre(5, 4, 2));
}

// The reader of a named pipe decides when the writer goes on.
TEST(CheckpointWriter, SaysWhichBestOneIsThere) {
  const ScratchFolder folder;
  WriterBed bed;
  CheckpointPlace place{.name = {}, .store = CheckpointStore(folder / "run"), .keep = 9};
  CheckpointWriter writer(bed.world.world_group(), bed.options());
  SaveTask good = bed.task(3, {&place}), bad = bed.task(4, {&place});
  good.best = {.step = 3, .validation_loss = 0.5};
  bad.best = {.step = 4, .validation_loss = 0.25};
  writer.save(std::move(good), bed.layout());
  writer.finish();
  EXPECT_EQ(writer.marked_best(), 3);
  {
    const WriteWatchScope full(
        [](WriteStage /*stage*/, const fs::path& path) { return path.filename() == "best.json" ? ENOSPC : 0; });
    writer.save(std::move(bad), bed.layout());
    writer.finish();
  }
  EXPECT_EQ(writer.marked_best(), 3);
  EXPECT_EQ(bed.reports.size(), 1u);
}

TEST(CheckpointWriter, TheLastOneGoesWhereThereIsRoom) {
  const ScratchFolder folder;
  WriterBed bed;
  put_file_at(folder / "full");
  CheckpointPlace bad{.name = {}, .store = CheckpointStore(folder / "full" / "run")};
  CheckpointPlace good{.name = "fast", .store = CheckpointStore(folder / "run")};
  CheckpointWriter writer(bed.world.world_group(), bed.options());
  const auto saved = writer.save_now(bed.task(3, {&bad, &good}), bed.layout());
  EXPECT_EQ(saved.place, &good);
  EXPECT_EQ(saved.errors.size(), 1u);
  EXPECT_THAT(good.store.steps(), ElementsAre(3));
  EXPECT_THROW(writer.save_now(bed.task(4, {&bad}), bed.layout()), Error);
}

TEST(CheckpointWriter, SkipsWhileAnotherIsBeingWritten) {
  const ScratchFolder folder;
  WriterBed bed;
  CheckpointPlace place{.name = {}, .store = CheckpointStore(folder / "run")};
  CheckpointWriter writer(bed.world.world_group(), bed.options(true, true));
  make_folders(place.store.folder());
  const fs::path best = place.store.folder() / "best.json";
  ASSERT_EQ(mkfifo(best.c_str(), 0600), 0);
  SaveTask first = bed.task(1, {&place});
  first.best = BestRecord{.step = 1, .validation_loss = 0.5};
  writer.save(std::move(first), bed.layout());
  while (place.store.steps().empty()) std::this_thread::yield();
  writer.save(bed.task(2, {&place}), bed.layout());
  EXPECT_THAT(place.store.steps(), ElementsAre(1));
  std::ifstream(best).get();
  writer.finish();
  writer.save(bed.task(3, {&place}), bed.layout());
  writer.finish();
  EXPECT_THAT(place.store.steps(), ElementsAre(3));
  EXPECT_THAT(writer.summary(), HasSubstr("beside training: 2, 1 left out while another was being written"));
}

TEST(CheckpointStore, CopiesAWholeCheckpointFromAnotherPlace) {
  const ScratchFolder folder;
  WriterBed bed;
  CheckpointStore from(folder / "from"), to(folder / "to");
  const SaveTask task = bed.task(4, {});
  from.save(task.index, task.groups);
  to.copy_from(from.path_of(4), task.index);
  EXPECT_EQ(files_of(to.path_of(4)), files_of(from.path_of(4)));
  EXPECT_NO_THROW(Checkpoint(to.path_of(4)));
}

}  // namespace
}  // namespace welkin::train
