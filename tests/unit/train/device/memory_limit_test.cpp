// SPDX-License-Identifier: Apache-2.0
#include "train/device/memory_limit.h"

#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>

#include "tiny_run.h"
#include "train/device/memory_report.h"

namespace welkin::train {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kKib = 1024;

// Whatever happens, the tests after this one have no limit.
class MemoryLimit : public ::testing::Test {
 protected:
  void TearDown() override { limit_cpu_memory(0); }
};

std::string refused_tensor(int64_t bytes) {
  try {
    at::empty({bytes}, at::kByte);
  } catch (const MemoryError& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::Other);
    return error.what();
  }
  return "no MemoryError";
}

TEST_F(MemoryLimit, CountsWhatTensorsTakeAndGiveBack) {
  limit_cpu_memory(int64_t{1} << 40);
  const int64_t before = cpu_memory_allocated();
  {
    const at::Tensor tensor = at::empty({100 * kKib}, at::kByte);
    EXPECT_GE(cpu_memory_allocated() - before, 100 * kKib);
    EXPECT_LT(cpu_memory_allocated() - before, 104 * kKib);
  }
  EXPECT_EQ(cpu_memory_allocated(), before);
  // oneDNN's kernels take scratch memory by raw calls.
  EXPECT_EQ(at::conv2d(at::ones({1, 3, 16, 16}), at::ones({4, 3, 3, 3})).numel(), 4 * 14 * 14);
  EXPECT_EQ(at::empty({0}).numel(), 0);
}

TEST_F(MemoryLimit, RefusesBeyondItAndGoesOn) {
  limit_cpu_memory(int64_t{1} << 40);
  limit_cpu_memory(cpu_memory_allocated() + 64 * kKib);
  const int64_t before = cpu_memory_allocated();
  const std::string text = refused_tensor(100 * kKib);
  EXPECT_THAT(text, HasSubstr("[memory] tensors would take more memory than the limit allows: requested=100 KiB, free=64.0 KiB, "
                              "limit="));
  EXPECT_THAT(text, HasSubstr("Raise --memory_limit_gib, or take smaller batches"));
  EXPECT_EQ(cpu_memory_allocated(), before) << "a refused request leaves nothing behind";
  EXPECT_EQ(refused_tensor(16 * kKib), "no MemoryError");
  limit_cpu_memory(0);
  EXPECT_EQ(refused_tensor(100 * kKib), "no MemoryError");
}

std::string run_with_limit(int64_t bytes, std::string* log) {
  const ScratchFolder folder;
  config::RunConfig config = tiny_config(folder.path());
  config.backend.memory_limit_gib = static_cast<double>(bytes) / (1 << 30);
  std::string text = "no MemoryError";
  try {
    run_tiny(config, {});
  } catch (const MemoryError& error) {
    text = error.what();
  }
  *log = read_file(folder / "base" / "1GPU" / "00" / "out.log", 1 << 24);
  return text;
}

// The graph of a forward pass does not fit: the error comes out of autograd's engine or an operator with its type.
TEST_F(MemoryLimit, ARunThatDoesNotFitSaysWhereTheMemoryIs) {
  limit_cpu_memory(int64_t{1} << 40);
  std::string log;
  const std::string text = run_with_limit(cpu_memory_allocated() + 160 * kKib, &log);
  for (const char* part : {"[memory] tensors would take more memory than the limit allows: requested=", ", free=", ", limit=",
                           ", weights=", ", gradients=", ", optimizer=", ", buffers=", ", activations=",
                           "--micro_batch_size (now 4 samples a forward pass)", "--memory_limit_gib"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  // Which step it is depends on how far the loader is, and on the sizes that the allocator rounds to.
  EXPECT_THAT(log, ::testing::ContainsRegex("Out of memory at step [1-9]"));
  EXPECT_THAT(log, ::testing::ContainsRegex("weights +[0-9.]+ KiB"));
  EXPECT_EQ(run_with_limit(cpu_memory_allocated() + (int64_t{1} << 28), &log), "no MemoryError");
}

// A GPU that is full has no limit that could be raised.
TEST_F(MemoryLimit, OnlyALimitThatIsSetCanBeRaised) {
  config::RunConfig config;
  const MemoryError full({.requested = 2, .used = 1, .limit = 2}, {}, "Take smaller batches");
  EXPECT_THAT(explained(full, {}, config).what(), ::testing::Not(HasSubstr("--memory_limit_gib")));
  config.backend.memory_limit_gib = 1;
  EXPECT_THAT(explained(full, {}, config).what(), HasSubstr("or raise --memory_limit_gib"));
}

// What is used already, or of no use here, is no remedy.
TEST_F(MemoryLimit, RemediesAreThoseThatAreLeft) {
  const MemoryError full({.requested = 2, .used = 1, .limit = 2}, {}, "");
  config::RunConfig config;
  config.loop.global_batch_size = 8;
  const KnownMemory in_training{.rest = "activations", .trains = true, .has_blocks = true}, in_use{.rest = "activations"};
  const auto said = [&](const KnownMemory& known) { return std::string(explained(full, known, config).what()); };
  EXPECT_THAT(said(in_training), HasSubstr("Activations shrink with --micro_batch_size (now 8 samples a forward pass), "
                                           "--activation_checkpointing blocks and --amp_mode bf16."));
  EXPECT_THAT(said(in_use), HasSubstr("with --micro_batch_size (now 8 samples a forward pass) and --amp_mode bf16."));
  config.loop.local_batch_size = 2;  // of four ranks
  EXPECT_THAT(said(in_use), HasSubstr("(now 2 samples a forward pass)"));
  config.loop.micro_batch_size = 1;
  config.loop.activation_checkpointing = config::CheckpointedPart::Blocks;
  EXPECT_THAT(said(in_training), HasSubstr("Activations shrink with --amp_mode bf16."));
  config.precision.amp_mode = config::AmpMode::Bf16;
  EXPECT_THAT(said(in_training), HasSubstr("Activations shrink with a smaller model: nothing else is left."));
}

// Smaller batches are of no use to a model whose weights alone are too large.
TEST_F(MemoryLimit, RemediesAreForWhatTakesMost) {
  config::RunConfig config;
  const auto said = [&](const KnownMemory& known, int64_t requested) {
    const int64_t named = known.weights + known.gradients + known.optimizer + known.buffers;
    const MemoryError full({.requested = requested, .used = named, .limit = named}, {}, "");
    return std::string(explained(full, known, config).what());
  };
  const std::string of_state =
      "Weights, gradients and the optimizer's state shrink with --set optimizer=SGD, --tensor_parallel over more processes and a "
      "smaller model";
  EXPECT_THAT(said({.weights = 60, .buffers = 5, .rest = "optimizer", .trains = true, .has_plan = true}, 10),
              HasSubstr(of_state + "."));
  EXPECT_THAT(said({.weights = 10, .buffers = 50, .rest = "optimizer", .trains = true, .has_plan = true}, 60),
              HasSubstr(of_state + "; buffers"));
  EXPECT_THAT(said({.weights = 60, .rest = "activations", .trains = true}, 70), HasSubstr("Activations shrink with"));
  EXPECT_THAT(said({.weights = 60, .rest = "weights"}, 10), HasSubstr(" Weights shrink with a smaller model."));
  EXPECT_THAT(said({.weights = 60, .rest = "weights", .trains = true, .has_plan = true}, 10),
              HasSubstr(" Weights shrink with --tensor_parallel over more processes and a smaller model."));
  config.optimizer.optimizer = "SGD";
  EXPECT_THAT(said({.weights = 60, .rest = "optimizer", .trains = true}, 10),
              HasSubstr(" Weights, gradients and the optimizer's state shrink with a smaller model."));
  const KnownMemory much_data{.weights = 5, .buffers = 50, .rest = "activations", .trains = true};
  EXPECT_THAT(said(much_data, 10), HasSubstr(" Buffers shrink with --set prefetch_depth=1 (now 2) and smaller batches; "
                                             "activations shrink with "));
  config.data.prefetch_depth = 1;
  EXPECT_THAT(said(much_data, 10), HasSubstr(" Buffers shrink with smaller batches; activations"));
}

template <typename Throw>
std::string said_of(const Throw& raise) {
  try {
    raise();
  } catch (...) {
    const auto error = memory_error_if_any(0);
    return error ? error->what() : "none of memory";
  }
  return "nothing";
}

TEST(MemoryError, TheSystemsRefusalIsOneToo) {
  // As torch says it: an allocation of that size would end a program under AddressSanitizer.
  EXPECT_THAT(
      said_of([] { TORCH_CHECK(false, "DefaultCPUAllocator: can't allocate memory: you tried to allocate 65536 bytes. "); }),
      HasSubstr("[memory] the system gives this process no more memory: requested=64.0 KiB, free="));
  EXPECT_THAT(said_of([] { throw std::bad_alloc(); }), HasSubstr("requested=unknown, free="));
  EXPECT_EQ(said_of([] { TORCH_CHECK(false, "you tried to allocate 3 bytes"); }), "none of memory");
  EXPECT_EQ(said_of([] { throw DataError("data", "memory", "Look"); }), "none of memory");
  EXPECT_EQ(said_of([] { throw 3; }), "none of memory");
}

TEST(MemoryError, WhatIsLeftIsForWhatWasBeingMade) {
  const MemoryError full({.requested = 2, .used = 100, .limit = 101}, {}, "");
  const auto said = [&](const KnownMemory& known) { return std::string(explained(full, known, {}).what()); };
  const parallel::ParamTable no_model;
  EXPECT_THAT(said(known_memory(no_model, nullptr, 0, false)),
              HasSubstr("weights=0 B, gradients=0 B, optimizer=0 B, buffers=100 B"));
  EXPECT_THAT(said(known_memory(no_model, nullptr, 30, true)),
              HasSubstr("weights=70 B, gradients=0 B, optimizer=0 B, buffers=30 B"));
  parallel::ParamTable model;
  model.rows().emplace_back().local = at::zeros({10}, at::kFloat);
  EXPECT_THAT(said(known_memory(model, nullptr, 30, true)),
              HasSubstr("weights=40 B, gradients=0 B, optimizer=30 B, buffers=30 B, activations=0 B"));
  EXPECT_THAT(said({.weights = 60, .rest = "activations"}),
              HasSubstr("weights=60 B, gradients=0 B, optimizer=0 B, buffers=0 B, activations=40 B"));
}

TEST(MemoryError, OfAProcessCountsTheProgramAndAsksForMore) {
  const MemoryError full({.requested = 2 << 20, .used = 3 << 20, .limit = 4 << 20, .of_process = true}, {}, "");
  config::RunConfig config;
  config.backend.memory_limit_gib = 1;  // not what has been met
  const std::string text = explained(full, {.weights = 1 << 20, .rest = "activations"}, config).what();
  EXPECT_THAT(text, HasSubstr("requested=2.0 MiB, free=1.0 MiB, limit=4.0 MiB, weights=1.0 MiB"));
  EXPECT_THAT(text, HasSubstr("activations and the program=2.0 MiB"));
  EXPECT_THAT(text, HasSubstr("ulimit -v"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("--memory_limit_gib")));
}

}  // namespace
}  // namespace welkin::train
