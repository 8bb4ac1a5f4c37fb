// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/checkpoint.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/fault/write_watch.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/text.h"
#include "scratch_folder.h"
#include "train/checkpoint/checkpoint_store.h"

namespace welkin::train {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

CheckpointIndex index_at(int64_t iteration) {
  CheckpointIndex index;
  index.position = {.iteration = iteration, .epoch = 1, .step_in_epoch = 3};
  index.seed = 7;
  index.config = "base: {embed_dim: 32}\n";
  index.validation_loss = 0.1;
  return index;
}

std::vector<CheckpointGroup> groups_with(double value) {
  const at::Tensor columns = at::arange(6, at::kFloat).view({2, 3}).t() + value;  // strides of a transposed matrix
  return {{.name = "model", .tensors = {{"a.weight", columns}, {"a.bias", at::full({3}, value)}}},
          {.name = "optimizer", .tensors = {{"steps", at::full({}, value)}, {"exp_avg.a.weight", columns * 2}}},
          {.name = "state", .tensors = {{"updates", at::full({}, int64_t{5}, at::kLong)}}}};
}

template <typename Function>
std::string checkpoint_error(Function&& function) {
  try {
    function();
  } catch (const CheckpointError& error) {
    return error.what();
  }
  return "no error";
}

void flip_a_byte(const fs::path& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(-1, std::ios::end);
  const char last = static_cast<char>(file.get());
  file.seekp(-1, std::ios::end);
  file.put(static_cast<char>(last ^ 1));
}

TEST(Checkpoint, BringsBackValuesOfAnyStridesAndTypes) {
  const ScratchFolder folder;
  write_checkpoint(folder / "step_4", index_at(4), groups_with(1.5));
  const Checkpoint checkpoint(folder / "step_4");
  EXPECT_EQ(checkpoint.index().position, index_at(4).position);
  EXPECT_EQ(checkpoint.index().seed, 7u);
  EXPECT_EQ(checkpoint.index().config, index_at(4).config);
  EXPECT_EQ(checkpoint.index().validation_loss, 0.1);
  EXPECT_FALSE(checkpoint.index().best_loss.has_value());
  auto groups = groups_with(0);
  for (const CheckpointGroup& group : groups) checkpoint.read_group(group);
  const auto wanted = groups_with(1.5);
  for (size_t g = 0; g < groups.size(); ++g) {
    for (size_t t = 0; t < groups[g].tensors.size(); ++t) {
      EXPECT_TRUE(at::equal(groups[g].tensors[t].value, wanted[g].tensors[t].value)) << groups[g].tensors[t].name;
    }
  }
}

TEST(Checkpoint, SplitsLargeGroupsIntoShards) {
  const ScratchFolder folder;
  CheckpointGroup group{.name = "model", .tensors = {}};
  for (const char* name : {"a", "b", "c"}) group.tensors.push_back({name, at::ones({100})});
  write_checkpoint(folder / "step_1", index_at(1), {group}, /*largest_shard_bytes=*/800);
  EXPECT_TRUE(fs::exists(folder / "step_1" / "model-2.safetensors"));
  const Checkpoint checkpoint(folder / "step_1");
  checkpoint.read_group(group);
  EXPECT_EQ(checkpoint.read("c").numel(), 100);
}

TEST(Checkpoint, NamesTheDamagedFile) {
  const ScratchFolder folder;
  write_checkpoint(folder / "step_1", index_at(1), groups_with(1));
  flip_a_byte(folder / "step_1" / "optimizer.safetensors");
  const std::string text = checkpoint_error([&] { const Checkpoint opened(folder / "step_1"); });
  EXPECT_THAT(text, HasSubstr("[checkpoint] a file is damaged: path="));
  EXPECT_THAT(text, HasSubstr("optimizer.safetensors, xxh3="));
  fs::resize_file(folder / "step_1" / "optimizer.safetensors", 10);
  EXPECT_THAT(checkpoint_error([&] { const Checkpoint opened(folder / "step_1"); }), HasSubstr("a file has the wrong size"));
  fs::remove(folder / "step_1" / "optimizer.safetensors");
  EXPECT_THAT(checkpoint_error([&] { const Checkpoint opened(folder / "step_1"); }), HasSubstr("a file is missing"));
}

TEST(Checkpoint, SaysWhereItsRunStoodAndWhatItChose) {
  CheckpointIndex index = index_at(4);
  index.learning_rate = 0.5;
  index.parameters = {"b", "a"};
  index.mesh = {{"dp", 2}, {"tp", 4}};
  index.loader = {.global_batch_size = 8, .samples_in_epoch = 24};
  index.facts = {{"device", "cpu"}};
  index.origin = "file.pt";
  const CheckpointIndex back = parse_checkpoint_index(to_json(index), "x");
  EXPECT_EQ(back.learning_rate, 0.5);
  EXPECT_THAT(back.parameters, ElementsAre("b", "a"));
  EXPECT_EQ(back.mesh, index.mesh);
  EXPECT_EQ(back.loader, index.loader);
  EXPECT_EQ(back.facts, index.facts);
  EXPECT_EQ(back.origin, "file.pt");
}

TEST(Checkpoint, RefusesAChangedIndex) {
  const std::string good = to_json(index_at(4));
  EXPECT_EQ(parse_checkpoint_index(good, "x").position.iteration, 4);
  std::string changed = good;
  changed.replace(changed.find("\"iteration\": 4"), 14, "\"iteration\": 5");
  EXPECT_THAT(checkpoint_error([&] { parse_checkpoint_index(changed, "x"); }), HasSubstr("its hash does not fit its content"));
  for (const std::string bad : {"", "[]", "{", "{\"xxh3\": 3}", "nonsense"}) {
    EXPECT_THAT(checkpoint_error([&] { parse_checkpoint_index(bad, "x"); }), HasSubstr("index.json cannot be used: path=x"))
        << bad;
  }
}

// Its hash fits: whoever makes such a file can count that too. The conversion of such a number is undefined.
TEST(Checkpoint, RefusesNumbersThatAreNoIntegers) {
  for (const char* number : {"1e123", "4.5", "-1e300", "\"4\"", "true"}) {
    nlohmann::json body = nlohmann::json::parse(to_json(index_at(4)));
    body.erase("xxh3");
    body["iteration"] = nlohmann::json::parse(number);
    body["xxh3"] = hex_digits(xxh3_64(as_byte_span(body.dump())));
    EXPECT_THAT(checkpoint_error([&] { parse_checkpoint_index(body.dump(), "x"); }),
                HasSubstr("key iteration: an integer was expected"))
        << number;
  }
}

// It would be copied and hashed by functions that call themselves for each level, until the stack ends.
TEST(Checkpoint, RefusesAnIndexThatIsNestedDeeply) {
  constexpr size_t kLevels = 300'000;
  const std::string text = cat(R"({"xxh3": "0", "files": )", std::string(kLevels, '['), std::string(kLevels, ']'), "}");
  EXPECT_THAT(
      [&] { parse_checkpoint_index(text, "step_1/index.json"); },
      ::testing::ThrowsMessage<CheckpointError>(HasSubstr(
          "[checkpoint] index.json cannot be used: path=step_1/index.json, reason=nested too deeply: limit=16. The files were")));
}

TEST(Checkpoint, SaysWhichTensorDoesNotFit) {
  const ScratchFolder folder;
  write_checkpoint(folder / "step_1", index_at(1), groups_with(1));
  const Checkpoint checkpoint(folder / "step_1");
  EXPECT_THAT(checkpoint_error([&] { checkpoint.read_into("a.bias", at::zeros({4})); }),
              HasSubstr("tensor=a.bias, stored=(3) F32, wanted=(4) F32"));
  EXPECT_THAT(checkpoint_error([&] { checkpoint.read_into("a.bias", at::zeros({3}, at::kDouble)); }),
              HasSubstr("wanted=(3) F64"));
  const CheckpointGroup other{.name = "model", .tensors = {{"b.weight", at::zeros({2})}}};
  EXPECT_THAT(checkpoint_error([&] { checkpoint.read_group(other); }),
              HasSubstr("not stored=1 (b.weight), not wanted=2 (a.bias a.weight)"));
}

std::optional<Checkpoint> newest_of(const CheckpointStore& store, std::vector<std::string>* reports = nullptr) {
  std::vector<fs::path> folders;
  for (const int64_t step : store.steps()) folders.push_back(store.path_of(step));
  return first_good(
      folders, [](const fs::path& folder) { return Checkpoint(folder); },
      [reports](const std::string& text) {
        if (reports != nullptr) reports->push_back(text);
      });
}

TEST(CheckpointStore, TakesTheNewestGoodOneAndReportsTheDamaged) {
  const ScratchFolder folder;
  CheckpointStore store(folder / "checkpoints");
  EXPECT_FALSE(newest_of(store).has_value());
  for (const int64_t step : {2, 10, 4}) store.save(index_at(step), groups_with(static_cast<double>(step)));
  EXPECT_THAT(store.steps(), ElementsAre(10, 4, 2));
  flip_a_byte(store.path_of(10) / "model.safetensors");
  std::vector<std::string> reports;
  const auto good = newest_of(store, &reports);
  ASSERT_TRUE(good.has_value());
  EXPECT_EQ(good->index().position.iteration, 4);
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_THAT(reports[0], HasSubstr("step_10"));
}

TEST(CheckpointStore, KeepsTheNewestAndTheBest) {
  const ScratchFolder folder;
  CheckpointStore store(folder / "checkpoints");
  for (const int64_t step : {1, 2, 3, 4}) store.save(index_at(step), groups_with(1));
  store.mark_best({.step = 1, .validation_loss = 0.25});
  store.prune(2);
  EXPECT_THAT(store.steps(), ElementsAre(4, 3, 1));
  EXPECT_EQ(store.best()->validation_loss, 0.25);
  store.mark_best({.step = 4, .validation_loss = 0.125});
  store.prune(2);
  EXPECT_THAT(store.steps(), ElementsAre(4, 3));
}

// A writer may be killed between a checkpoint and the line that names it, and a best one may have failed to be written.
TEST(CheckpointStore, TheBestIsTheBestThatIsThere) {
  const ScratchFolder folder;
  CheckpointStore store(folder / "checkpoints");
  const auto save = [&](int64_t step, double loss, int64_t best_step, double best_loss) {
    CheckpointIndex index = index_at(step);
    index.validation_loss = loss;
    index.best_loss = best_loss;
    index.best_step = best_step;
    store.save(index, groups_with(1));
  };
  EXPECT_FALSE(store.repair_best("", {}, 9).has_value());
  save(1, 0.5, 1, 0.5);
  store.mark_best({.step = 1, .validation_loss = 0.5});
  save(2, 0.25, 2, 0.25);  // killed before it was named
  EXPECT_EQ(store.repair_best("", 2, 2)->step, 2);
  EXPECT_EQ(store.best()->validation_loss, 0.25);
  save(4, 0.75, 3, 0.125);  // the best of step 3 could not be written
  EXPECT_EQ(store.repair_best("", 3, 4)->step, 2);
  fs::remove_all(store.path_of(2));
  EXPECT_EQ(store.repair_best("", 2, 4)->step, 1);
  EXPECT_EQ(store.best()->step, 1);
  EXPECT_EQ(store.repair_best("rmse", {}, 4), std::nullopt);  // sought anew: what was chosen by another metric stays named
  EXPECT_EQ(store.best()->step, 1);
  fs::remove_all(store.path_of(1));
  EXPECT_FALSE(store.repair_best("", 1, 4).has_value());
  EXPECT_FALSE(store.best().has_value());
}

TEST(CheckpointStore, KeepsMultiplesOfAStepBesides) {
  const ScratchFolder folder;
  CheckpointStore store(folder / "checkpoints");
  for (const int64_t step : {4, 5, 6, 8, 9}) store.save(index_at(step), groups_with(1));
  store.prune(1, 4);
  EXPECT_THAT(store.steps(), ElementsAre(9, 8, 4));
}

TEST(CheckpointStore, ReplacesADamagedOneOfTheSameStep) {
  const ScratchFolder folder;
  CheckpointStore store(folder / "checkpoints");
  store.save(index_at(1), groups_with(1));
  flip_a_byte(store.path_of(1) / "model.safetensors");
  store.save(index_at(1), groups_with(1));
  EXPECT_EQ(Checkpoint(store.path_of(1)).index().position.iteration, 1);
}

// The only one of a run is the worst to lose: whoever is ended while it is replaced still has it.
TEST(CheckpointStore, KeepsTheOneThatIsReplacedUntilTheNewOneStands) {
  const ScratchFolder folder;
  CheckpointStore store(folder / "checkpoints");
  CheckpointIndex unvalidated = index_at(1);
  unvalidated.validation_loss.reset();
  store.save(unvalidated, groups_with(1));
  for (const WriteStage end : {WriteStage::Write, WriteStage::Rename}) {
    bool is_whole = false;
    const WriteWatchScope watch([&](WriteStage stage, const fs::path& path) {
      if (stage != end || (stage == WriteStage::Rename && path.filename() != "step_1")) return 0;
      CheckpointStore found(folder / "checkpoints");  // by a process that comes after one that ended here
      fs::copy(found.folder(), folder / "seen", fs::copy_options::recursive);
      CheckpointStore seen(folder / "seen");
      seen.put_back();
      is_whole = newest_of(seen).has_value();
      fs::remove_all(folder / "seen");
      return ENOSPC;
    });
    EXPECT_THAT(checkpoint_error([&] { store.save(index_at(1), groups_with(1)); }), HasSubstr("cannot be saved"));
    EXPECT_TRUE(is_whole);
    EXPECT_EQ(newest_of(store)->index().validation_loss, std::nullopt);
  }
  store.save(index_at(1), groups_with(1));
  EXPECT_EQ(newest_of(store)->index().validation_loss, 0.1);
  for (const auto& entry : fs::directory_iterator(store.folder())) EXPECT_EQ(entry.path().filename(), "step_1");
}

TEST(CheckpointStore, RemovesWhatAKilledWriterLeft) {
  const ScratchFolder folder;
  CheckpointStore store(folder / "checkpoints");
  store.save(index_at(1), groups_with(1));
  for (const char* name : {".step_2.partial.17", ".step_3.removed", ".step_1.replaced"})
    fs::create_directory(store.folder() / name);
  std::ofstream(store.folder() / ".best.json.17.0.tmp") << "{";
  store.continue_from(1);
  for (const auto& entry : fs::directory_iterator(store.folder())) EXPECT_EQ(entry.path().filename(), "step_1");
}

TEST(CheckpointStore, MovesAnEarlierRunAside) {
  const ScratchFolder folder;
  CheckpointStore store(folder / "checkpoints");
  EXPECT_FALSE(store.move_aside().has_value());
  store.save(index_at(1), groups_with(1));
  EXPECT_EQ(store.move_aside()->filename(), "checkpoints.old-1");
  EXPECT_TRUE(store.steps().empty());
}

// A file may grow to so many bytes; beyond, writes fail as on a full disk (EFBIG instead of ENOSPC).
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : former_handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &former_);
    const rlimit limit{bytes, former_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &former_);
    std::signal(SIGXFSZ, former_handler_);
  }

 private:
  rlimit former_{};
  void (*former_handler_)(int);
};

TEST(CheckpointStore, AFullDiskLeavesThePreviousOneGoodAndNothingHalfWritten) {
  const ScratchFolder folder;
  CheckpointStore store(folder / "checkpoints");
  store.save(index_at(1), groups_with(1));
  const std::vector<CheckpointGroup> large = {{.name = "model", .tensors = {{"a", at::ones({100000})}}}};
  std::string text;
  {
    const FileSizeLimit limit(4096);
    text = checkpoint_error([&] { store.save(index_at(2), large); });
  }
  EXPECT_THAT(text, HasSubstr("[checkpoint] cannot be saved: path="));
  EXPECT_THAT(text, HasSubstr("earlier checkpoints are untouched"));
  EXPECT_THAT(store.steps(), ElementsAre(1));
  EXPECT_EQ(newest_of(store)->index().position.iteration, 1);
  for (const auto& entry : fs::directory_iterator(store.folder())) EXPECT_EQ(entry.path().filename(), "step_1");
}

}  // namespace
}  // namespace welkin::train
