// SPDX-License-Identifier: Apache-2.0
#include "train/device/peak_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "core/file.h"
#include "scratch_folder.h"

namespace welkin::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

PeakConditions two_threads() {
  return {.processor = "Some CPU", .instruction_set = "avx512", .gemm = "mkl", .dtype = "fp32", .threads = 2};
}

// A machine whose matmuls reach what `next` says, and what a source on it says and does.
struct Machine {
  double next = 100e9;
  std::vector<double> seconds{};
  std::vector<std::string> notes{};

  PeakSource source(std::optional<PeakCache> cache, bool anew = false, const PeakConditions& on = two_threads()) {
    return {std::move(cache), on, anew,
            [this](double time) {
              seconds.push_back(time);
              return next;
            },
            [this](const std::string& note) { notes.push_back(note); }};
  }
};

TEST(PeakCache, ProcessorsOfOneNameDifferByFamilyAndModel) {
  const auto name_of = [](const char* text) {
    std::istringstream cpuinfo(text);
    return described_processor(cpuinfo);
  };
  EXPECT_EQ(name_of("processor\t: 0\ncpu family\t: 23\nmodel\t\t: 1\nmodel name\t: AMD EPYC\nprocessor\t: 1\nmodel\t\t: 2\n"),
            "AMD EPYC family 23 model 1");
  EXPECT_EQ(name_of("model name\t: Some CPU\n"), "Some CPU");
  EXPECT_EQ(name_of("BogoMIPS : 50.00\n"), "");
}

TEST(PeakSource, IsMeasuredOnceForEachCondition) {
  const ScratchFolder folder;
  const PeakCache cache(folder / "cache" / "peaks.json");
  Machine machine;
  PeakSource first = machine.source(cache);
  EXPECT_EQ(first.flops(1e9, 0.1), 100e9);
  EXPECT_EQ(first.origin(), "measured");
  EXPECT_THAT(machine.notes, ElementsAre("Peak of matmuls: 100 GFLOP/s, kept for later runs in " + cache.file().string() +
                                         " (Some CPU, 2 threads, avx512, mkl, fp32); --measure_peak measures it again"));
  machine.next = 25e9;  // a busy moment
  PeakSource second = machine.source(cache);
  EXPECT_DOUBLE_EQ(second.flops(1e9, 0.1), 100e9);
  EXPECT_THAT(second.origin(), StartsWith("kept from 20"));
  EXPECT_EQ(machine.seconds.size(), 1u);
  PeakConditions bf16 = two_threads();
  bf16.dtype = "bf16";
  EXPECT_EQ(machine.source(cache, false, bf16).flops(1e9, 0.1), 25e9);
  EXPECT_DOUBLE_EQ(machine.source(cache).flops(1e9, 0.1), 100e9);
}

TEST(PeakSource, IsMeasuredAnewOnDemand) {
  const ScratchFolder folder;
  const PeakCache cache(folder / "peaks.json");
  Machine machine;
  machine.source(cache).flops(1e9, 0.1);
  machine.next = 128e9;
  EXPECT_EQ(machine.source(cache, /*anew=*/true).flops(1e9, 0.1), 128e9);
  EXPECT_DOUBLE_EQ(machine.source(cache).flops(1e9, 0.1), 128e9);
}

TEST(PeakSource, AModelThatIsFasterCorrectsIt) {
  const ScratchFolder folder;
  const PeakCache cache(folder / "peaks.json");
  Machine machine;
  machine.next = 25e9;
  machine.source(cache).flops(1e9, 0.1);
  machine.next = 100e9;
  PeakSource source = machine.source(cache);
  EXPECT_EQ(source.flops(40e9, 0.1), 100e9);
  EXPECT_EQ(machine.notes[1],
            "The model's 40 GFLOP/s are more than the kept peak of 25 GFLOP/s, which was measured on a busy machine: it is "
            "measured again");
  EXPECT_DOUBLE_EQ(machine.source(cache).flops(1e9, 0.1), 100e9);
}

TEST(PeakSource, WithoutACacheItIsMeasuredInTheTimeGiven) {
  Machine machine;
  PeakSource source = machine.source({});
  EXPECT_EQ(source.flops(1e9, 0.125), 100e9);
  EXPECT_EQ(source.flops(200e9, 0.125), 100e9);
  EXPECT_THAT(machine.seconds, ElementsAre(0.125));
  EXPECT_TRUE(machine.notes.empty());
}

TEST(PeakSource, ADamagedFileIsReplacedAndAFolderThatCannotBeWrittenIsSaid) {
  const ScratchFolder folder;
  const PeakCache cache(folder / "peaks.json");
  for (const char* text : {"", "{", "[1]", "[{\"processor\": 3}]", "{\"a\": 1}", "[[[[[["}) {
    std::ofstream(cache.file()) << text;
    Machine machine;
    EXPECT_DOUBLE_EQ(machine.source(cache).flops(1e9, 0.1), 100e9);
    EXPECT_TRUE(cache.find(two_threads())) << text;
  }
  std::ofstream(folder / "file") << "no folder";
  Machine machine;
  EXPECT_EQ(machine.source(PeakCache(folder / "file" / "peaks.json")).flops(1e9, 0.1), 100e9);
  EXPECT_THAT(machine.notes, ElementsAre(HasSubstr("The peak of matmuls is not kept: ")));
}

TEST(PeakCache, LiesWhereXdgSays) {
  EXPECT_EQ(peak_file("/x", "/home/a"), "/x/welkin/peaks.json");
  EXPECT_EQ(peak_file(nullptr, "/home/a"), "/home/a/.cache/welkin/peaks.json");
  EXPECT_EQ(peak_file("relative", "/home/a"), "/home/a/.cache/welkin/peaks.json");
  EXPECT_EQ(peak_file("", nullptr), "");
}

}  // namespace
}  // namespace welkin::train
