// SPDX-License-Identifier: Apache-2.0
// Real processes, each reading its shard of the same data set: together they must deliver what one process delivers, every step.
// A child is this program again (spawned, never forked: torch is loaded), running the one disabled test below.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "core/text.h"
#include "data/pipeline/pipeline.h"

namespace welkin::data {
namespace {

namespace fs = std::filesystem;

// Sample i is the number i; its draw is the target, so that random choices are compared too.
class Numbers : public Dataset {
 public:
  explicit Numbers(int64_t size) : size_(size) {
    spec_.input = {.channels = {"index"}, .units = {""}, .shape = {1, 1, 1}};
    spec_.target = {.channels = {"draw"}, .units = {""}, .shape = {1, 1, 1}};
  }
  int64_t size() const override { return size_; }
  const SampleSpec& spec() const override { return spec_; }
  SamplePlan plan(SampleKey key, const Region& wanted) const override {
    SamplePlan plan{.index = key.index, .region = wanted};
    plan.origin[0] = static_cast<int64_t>(key.draw % 65536);
    return plan;
  }
  void read(const SamplePlan& plan, SampleView out) const override {
    out.input[0] = static_cast<float>(plan.index);
    out.target[0] = static_cast<float>(plan.origin[0]);
  }

 private:
  int64_t size_;
  SampleSpec spec_;
};

struct ShardJob {
  int64_t size = 0;
  int64_t global_batch = 1;
  int64_t micro_batch = 1;
  int64_t num_shards = 1;
  int64_t shard = 0;
  bool drop_last = true;
  int64_t num_epochs = 2;
};

// "epoch step position index draw" per sample, in the order of delivery.
std::vector<std::string> deliver(const ShardJob& job) {
  const Numbers numbers(job.size);
  Pipeline pipeline(numbers, Sampler(job.size, Order::Shuffled, 7),
                    {.global_batch = job.global_batch,
                     .micro_batch = job.micro_batch,
                     .shard = job.shard,
                     .num_shards = job.num_shards,
                     .drop_last = job.drop_last,
                     .num_workers = 2});
  std::vector<std::string> lines;
  for (Batch batch = pipeline.next(); batch.epoch < job.num_epochs; batch = pipeline.next()) {
    for (int64_t i = 0; i < batch.input.size(0); ++i) {
      const auto number = [i](const at::Tensor& values) { return values.view({-1}).data_ptr<float>()[i]; };
      lines.push_back(cat(batch.epoch, " ", batch.step, " ", batch.sample.data_ptr<int64_t>()[i], " ", number(batch.input), " ",
                          number(batch.target)));
    }
  }
  return lines;
}

// The child's part: the job comes in the environment, the samples go to a file.
TEST(ShardChild, DISABLED_Run) {
  std::istringstream text(std::getenv("WELKIN_SHARD_JOB"));
  ShardJob job;
  std::string path;
  text >> job.size >> job.global_batch >> job.micro_batch >> job.num_shards >> job.shard >> job.drop_last >> path;
  ASSERT_TRUE(text);
  std::ofstream out(path);
  for (const auto& line : deliver(job)) out << line << "\n";
}

pid_t spawn_child(const ShardJob& job, const fs::path& out) {
  std::string variable = cat("WELKIN_SHARD_JOB=", job.size, " ", job.global_batch, " ", job.micro_batch, " ", job.num_shards, " ",
                             job.shard, " ", job.drop_last, " ", out.string());
  std::vector<std::string> words{"/proc/self/exe", "--gtest_also_run_disabled_tests", "--gtest_filter=ShardChild.DISABLED_Run"};
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::vector<char*> environment{variable.data()};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!std::string_view(*entry).starts_with("GTEST_")) environment.push_back(*entry);  // as rank_processes.cpp does
  }
  environment.push_back(nullptr);
  pid_t child = 0;
  EXPECT_EQ(posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments.data(), environment.data()), 0);
  return child;
}

// Runs all shards at once and returns their samples grouped by step, shards in order.
std::map<std::string, std::vector<std::string>> deliver_by_processes(ShardJob job) {
  const auto folder = fs::path(testing::TempDir()) / cat("shards_", getpid());
  fs::create_directories(folder);
  std::vector<pid_t> children;
  for (job.shard = 0; job.shard < job.num_shards; ++job.shard) {
    children.push_back(spawn_child(job, folder / cat(job.shard)));
  }
  std::map<std::string, std::vector<std::string>> steps;
  for (int64_t shard = 0; shard < job.num_shards; ++shard) {
    int status = -1;
    waitpid(children[static_cast<size_t>(shard)], &status, 0);
    EXPECT_EQ(status, 0) << "shard " << shard;
    std::ifstream in(folder / cat(shard));
    for (std::string epoch, step, rest; in >> epoch >> step && std::getline(in, rest);)
      steps[cat(epoch, " ", step)].push_back(rest);
  }
  fs::remove_all(folder);
  return steps;
}

std::map<std::string, std::vector<std::string>> deliver_alone(ShardJob job) {
  job.num_shards = 1;
  std::map<std::string, std::vector<std::string>> steps;
  for (const auto& line : deliver(job)) {
    std::istringstream in(line);
    std::string epoch, step, rest;
    in >> epoch >> step;
    std::getline(in, rest);
    steps[cat(epoch, " ", step)].push_back(rest);
  }
  return steps;
}

class SampleShards : public testing::TestWithParam<int64_t> {};

TEST_P(SampleShards, TrainingStepsEqualThoseOfOneProcess) {
  const ShardJob job{.size = 83, .global_batch = 16, .micro_batch = 3, .num_shards = GetParam(), .drop_last = true};
  const auto alone = deliver_alone(job);
  ASSERT_EQ(alone.size(), 2U * (83 / 16));
  EXPECT_EQ(deliver_by_processes(job), alone);
}

TEST_P(SampleShards, ValidationCountsEverySampleOnce) {
  const ShardJob job{.size = 83, .global_batch = 16, .micro_batch = 3, .num_shards = GetParam(), .drop_last = false};
  const auto alone = deliver_alone(job);
  const auto together = deliver_by_processes(job);
  EXPECT_EQ(together, alone);
  int64_t count = 0;
  for (const auto& [step, samples] : together) count += static_cast<int64_t>(samples.size());
  EXPECT_EQ(count, 2 * job.size);
}

INSTANTIATE_TEST_SUITE_P(Processes, SampleShards, testing::Values(2, 4, 8));

}  // namespace
}  // namespace welkin::data
