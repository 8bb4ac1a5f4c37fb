// SPDX-License-Identifier: Apache-2.0
// Every schedule over many shapes: it ends, it idles as its publication says, and it holds as many activations as it promises.
#include "parallel/pipeline/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "core/error.h"
#include "core/text.h"
#include "number_close.h"
#include "parallel/pipeline/schedule_picture.h"
#include "parallel/pipeline/schedule_timing.h"

namespace welkin::parallel {
namespace {

using config::PipelineSchedule;
using testing::HasSubstr;

constexpr std::array kKinds{PipelineSchedule::GPipe, PipelineSchedule::OneForwardOneBackward, PipelineSchedule::Interleaved,
                            PipelineSchedule::ZeroBubble};

std::string text_of(PipelineSchedule kind, const PipelineShape& shape) {
  return cat(config::name_of(kind), " ranks ", shape.ranks, " micros ", shape.micros, " chunks ", shape.chunks);
}

// All that a kind takes, of up to nine ranks, twenty micro-batches and four chunks.
template <typename Function>
void for_each_shape(const Function& function) {
  size_t count = 0;
  for (const PipelineSchedule kind : kKinds) {
    for (int64_t ranks = 1; ranks <= 9; ++ranks) {
      for (int64_t micros = 1; micros <= 20; ++micros) {
        for (int64_t chunks = 1; chunks <= 4; ++chunks) {
          const PipelineShape shape{.ranks = ranks, .micros = micros, .chunks = chunks};
          if (!problem_of(kind, shape).what.empty()) continue;
          SCOPED_TRACE(text_of(kind, shape));
          function(kind, shape);
          ++count;
        }
      }
    }
  }
  EXPECT_GT(count, 500U);
}

TEST(PipelineSchedule, EveryTableIsSoundAndEnds) {
  for_each_shape(
      [](PipelineSchedule kind, const PipelineShape& shape) { EXPECT_EQ(problem_of(make_schedule(kind, shape)), ""); });
}

TEST(PipelineSchedule, AShortStepGoesThroughWithAnyNumber) {
  for (const PipelineSchedule kind : kKinds) {
    for (int64_t ranks = 1; ranks <= 5; ++ranks) {
      for (int64_t micros = 1; micros <= 11; ++micros) {
        const PipelineShape shape{.ranks = ranks, .micros = micros, .chunks = kind == PipelineSchedule::Interleaved ? 3 : 1};
        EXPECT_EQ(problem_of(schedule_of_short_step(kind, shape)), "") << text_of(kind, shape);
      }
    }
  }
}

TEST(PipelineSchedule, ForwardPassesAloneAreThoseOfGpipe) {
  const PipelineShape shape{.ranks = 3, .micros = 4, .chunks = 2};
  const Schedule forward = make_forward_schedule(shape);
  ASSERT_EQ(forward.rows.size(), 3U);
  for (int64_t rank = 0; rank < shape.ranks; ++rank) {
    const std::vector<Pass>& row = forward.rows[static_cast<size_t>(rank)];
    ASSERT_EQ(row.size(), 8U);
    for (int64_t n = 0; n < 8; ++n) {
      EXPECT_EQ(row[static_cast<size_t>(n)], (Pass{PassKind::Forward, n / 4 * 3 + rank, n % 4}));
    }
  }
}

TEST(PipelineSchedule, IdlesAsThePublicationSays) {
  for_each_shape([](PipelineSchedule kind, const PipelineShape& shape) {
    const double bubble = time_schedule(make_schedule(kind, shape)).bubble;
    const double promised = promised_bubble(kind, shape).value();
    EXPECT_TRUE(tests::rounds_to(bubble, promised, 1, kFp64, 1000)) << bubble << " " << promised;
  });
}

// Two micro-batches through stages of 1 and 3: the second rank begins after 1, and never waits again.
TEST(PipelineSchedule, TheSlowestStageSetsThePace) {
  const PassCosts costs{.forward = 1, .backward_input = 1, .backward_weight = 1, .transfer = 0, .stages = {0.5, 1.5}};
  const ScheduleTiming timing =
      time_schedule(make_schedule(PipelineSchedule::OneForwardOneBackward, {.ranks = 2, .micros = 2}), costs);
  EXPECT_DOUBLE_EQ(timing.length, 0.5 + 2 * 3 * 1.5 + 2 * 0.5);
  EXPECT_DOUBLE_EQ(timing.bubble, 1 - 2 * 3 * 2.0 / (2 * timing.length));
}

// Two ranks: F0 F1 I0 W0 F2 I1 W1 and F0 I0 F1 I1 W0 F2 I2 W1 W2, before whose weights two micro-batches wait.
TEST(PipelineSchedule, HoldsWhatGradientsOfWeightsAreMadeOf) {
  const Schedule halves = make_schedule(PipelineSchedule::ZeroBubble, {.ranks = 2, .micros = 3});
  EXPECT_EQ(held_with_waiting(halves, 1), (std::vector<double>{2, 2}));
  EXPECT_EQ(held_with_waiting(halves, 2), (std::vector<double>{3, 4}));
  EXPECT_EQ(held_with_waiting(halves, 0.5), (std::vector<double>{2, 1.5}));
  for_each_shape([](PipelineSchedule kind, const PipelineShape& shape) {
    const Schedule schedule = make_schedule(kind, shape);
    EXPECT_EQ(held_with_waiting(schedule, 1), time_schedule(schedule).held);
  });
}

TEST(PipelineSchedule, HoldsTheActivationsThatItPromises) {
  for_each_shape([](PipelineSchedule kind, const PipelineShape& shape) {
    const std::vector<double> held = time_schedule(make_schedule(kind, shape)).held;
    for (int64_t rank = 0; rank < shape.ranks; ++rank) {
      const auto micros = static_cast<double>(shape.micros);
      const auto later = static_cast<double>(shape.ranks - rank);  // with this one
      const double chunks = static_cast<double>(shape.chunks);
      const double interleaved = (2 * (later - 1) + (chunks - 1) * static_cast<double>(shape.ranks) + 1) / chunks;
      const double promised = kind == PipelineSchedule::GPipe                   ? micros
                              : kind == PipelineSchedule::OneForwardOneBackward ? std::min(micros, later)
                              : kind == PipelineSchedule::Interleaved           ? std::min(micros, interleaved)
                                                                      : std::min(micros, static_cast<double>(shape.ranks));
      EXPECT_EQ(held[static_cast<size_t>(rank)], promised) << "rank " << rank;
    }
  });
}

TEST(PipelineSchedule, ZeroBubbleIdlesLeast) {
  const PipelineShape shape{.ranks = 4, .micros = 8};
  EXPECT_LT(promised_bubble(PipelineSchedule::ZeroBubble, shape).value(),
            promised_bubble(PipelineSchedule::OneForwardOneBackward, shape).value() / 2);
}

// All that a kind takes of several steps of the model.
template <typename Function>
void for_each_rollout(const Function& function) {
  size_t count = 0;
  for (const PipelineSchedule kind : kKinds) {
    for (int64_t ranks = 1; ranks <= 5; ++ranks) {
      for (int64_t micros = 1; micros <= 11; ++micros) {
        for (int64_t chunks = 1; chunks <= 2; ++chunks) {
          for (const int64_t leads : {2, 3, 5}) {
            for (const bool only_last : {false, true}) {
              const PipelineShape shape{ranks, micros, chunks, leads, only_last};
              if (!problem_of(kind, shape).what.empty()) continue;
              SCOPED_TRACE(cat(text_of(kind, shape), " leads ", leads, only_last ? " of which the last has a gradient" : ""));
              function(kind, shape);
              ++count;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(count, 1000U);
}

TEST(RolloutSchedule, EveryTableIsSoundAndEnds) {
  for_each_rollout(
      [](PipelineSchedule kind, const PipelineShape& shape) { EXPECT_EQ(problem_of(make_schedule(kind, shape)), ""); });
}

TEST(RolloutSchedule, AShortStepGoesThroughWithAnyNumber) {
  for (const PipelineSchedule kind : kKinds) {
    for (int64_t ranks = 1; ranks <= 4; ++ranks) {
      for (int64_t micros = 1; micros <= 9; ++micros) {
        const PipelineShape shape{ranks, micros, kind == PipelineSchedule::Interleaved ? 2 : 1, /*leads=*/3};
        EXPECT_EQ(problem_of(schedule_of_short_step(kind, shape)), "") << text_of(kind, shape);
      }
    }
  }
}

// No order idles less where each group of micro-batches fills the ranks.
TEST(RolloutSchedule, IdlesAsTheFormulaSays) {
  for_each_rollout([](PipelineSchedule kind, const PipelineShape& shape) {
    const auto promised = promised_bubble(kind, shape);
    EXPECT_EQ(promised.has_value(), kind != PipelineSchedule::ZeroBubble && !shape.only_last);
    const double bubble = time_schedule(make_schedule(kind, shape)).bubble;
    if (promised) {
      EXPECT_TRUE(tests::rounds_to(bubble, *promised, 1, kFp64, 1000)) << bubble << " " << *promised;
    } else if (!shape.only_last) {
      EXPECT_LE(bubble, promised_bubble(PipelineSchedule::OneForwardOneBackward, shape).value() + 1e-12);
    }
  });
}

TEST(RolloutSchedule, HoldsTheStepsThatItPromises) {
  for_each_rollout([](PipelineSchedule kind, const PipelineShape& shape) {
    const std::vector<double> held = time_schedule(make_schedule(kind, shape)).held;
    const int64_t turns = (shape.only_last ? 1 : shape.leads) * shape.chunks, all = turns * shape.micros;
    const bool is_even = shape.micros % shape.ranks == 0;
    for (int64_t rank = 0; rank < shape.ranks; ++rank) {
      const int64_t later = shape.ranks - 1 - rank;
      const int64_t grouped = turns == 1 ? later + 1 : 2 * later + (turns - 1) * shape.ranks + 1;
      const bool has_groups = kind == PipelineSchedule::OneForwardOneBackward || kind == PipelineSchedule::Interleaved;
      const double own = held[static_cast<size_t>(rank)] * static_cast<double>(shape.chunks);
      EXPECT_LE(own, all) << "rank " << rank;
      if (kind == PipelineSchedule::GPipe) {
        EXPECT_EQ(own, all) << "rank " << rank;
      } else if (has_groups && is_even) {
        EXPECT_EQ(own, std::min(all, grouped)) << "rank " << rank;
      }
    }
  });
}

TEST(RolloutSchedule, IsPrintedWithItsSteps) {
  EXPECT_EQ(schedule_text(make_schedule(PipelineSchedule::OneForwardOneBackward, {2, 2, 1, 2})),
            "1f1b: 2 ranks, 2 micro-batches, 2 steps of the model\n"
            "rank 0   F0.0 F1.0 F0.1 F1.1 .    .    B0.1 -    .    B1.1 -    B0.0 -    B1.0 -\n"
            "rank 1   .    F0.0 F1.0 F0.1 B0.1 -    F1.1 B1.1 -    B0.0 -    B1.0 -    .    .\n"
            "idle 20.0 % of the time (formula: 20.0 %); activations of 4 3 steps of micro-batches held at once\n");
  const std::string last = schedule_text(make_schedule(PipelineSchedule::GPipe, {2, 1, 1, 2, true}));
  EXPECT_THAT(last, HasSubstr("gpipe: 2 ranks, 1 micro-batch, 2 steps of the model, a gradient of the last"));
  EXPECT_THAT(last, testing::Not(HasSubstr("formula")));
  EXPECT_THAT(schedule_svg(make_schedule(PipelineSchedule::ZeroBubble, {2, 2, 1, 2})), HasSubstr(">of weights, step 2<"));
  EXPECT_THAT(schedule_svg(make_schedule(PipelineSchedule::Interleaved, {2, 2, 2, 2})), HasSubstr(">forward, step 2, chunk 1<"));
}

TEST(PipelineSchedule, ATableWithoutAnEndIsFound) {
  Schedule schedule = make_schedule(PipelineSchedule::OneForwardOneBackward, {.ranks = 2, .micros = 2});
  std::reverse(schedule.rows[1].begin(), schedule.rows[1].end());
  EXPECT_THAT(problem_of(schedule),
              HasSubstr("passes wait for each other: rank 0 at backward of micro-batch 0 in stage 0, rank 1 "
                        "at backward of micro-batch 1 in stage 1"));
}

TEST(PipelineSchedule, ALackingOrMisplacedPassIsFound) {
  Schedule schedule = make_schedule(PipelineSchedule::GPipe, {.ranks = 2, .micros = 2});
  schedule.rows[1].pop_back();
  EXPECT_THAT(problem_of(schedule), HasSubstr("micro-batch 1 does not go once forward and once backward through stage 1"));
  schedule.rows[1].push_back({PassKind::Backward, 0, 1});
  EXPECT_THAT(problem_of(schedule), HasSubstr("backward of micro-batch 1 in stage 0 is on rank 1"));
}

std::string refusal(PipelineSchedule kind, const PipelineShape& shape) {
  try {
    make_schedule(kind, shape);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no ConfigError";
}

TEST(PipelineSchedule, SaysWhatWouldDo) {
  EXPECT_THAT(refusal(PipelineSchedule::Interleaved, {.ranks = 4, .micros = 6, .chunks = 2}),
              testing::AllOf(HasSubstr("the ranks of the pipeline do not divide the micro-batches of a step: "
                                       "pipeline_schedule=interleaved, pipeline_parallel=4, micro-batches=6"),
                             HasSubstr("makes 4 or 8 micro-batches")));
  EXPECT_THAT(refusal(PipelineSchedule::Interleaved, {.ranks = 4, .micros = 8, .chunks = 1}),
              HasSubstr("interleaving needs several chunks of the model per rank: pipeline_chunks=1"));
  EXPECT_THAT(refusal(PipelineSchedule::ZeroBubble, {.ranks = 2, .micros = 8, .chunks = 2}),
              HasSubstr("this schedule has one chunk of the model per rank: pipeline_schedule=zero_bubble, pipeline_chunks=2"));
  EXPECT_THAT(
      refusal(PipelineSchedule::GPipe, {.ranks = 2, .micros = 0}),
      HasSubstr("a pipeline needs ranks, micro-batches, chunks and steps of the model: ranks=2, micro-batches=0, chunks=1, "
                "multistep=1"));
}

TEST(PipelineSchedule, IsPrintedInSlots) {
  EXPECT_EQ(schedule_text(make_schedule(PipelineSchedule::OneForwardOneBackward, {.ranks = 2, .micros = 2})),
            "1f1b: 2 ranks, 2 micro-batches\n"
            "rank 0   F0 F1 .  .  B0 -  .  B1 -\n"
            "rank 1   .  F0 B0 -  F1 B1 -  .  .\n"
            "idle 33.3 % of the time (formula: 33.3 %); activations of 2 1 micro-batches held at once\n");
  EXPECT_THAT(schedule_text(make_schedule(PipelineSchedule::ZeroBubble, {.ranks = 2, .micros = 2})), HasSubstr("I0"));
  EXPECT_THAT(schedule_text(make_schedule(PipelineSchedule::Interleaved, {.ranks = 2, .micros = 2, .chunks = 2})),
              HasSubstr("F0.0 F1.0 F0.1 F1.1"));
}

TEST(PipelineSchedule, IsDrawnTrueToScale) {
  const std::string page = schedule_svg(make_schedule(PipelineSchedule::GPipe, {.ranks = 2, .micros = 1}));
  EXPECT_THAT(page, HasSubstr("gpipe: 2 ranks, 1 micro-batch"));
  EXPECT_THAT(page, HasSubstr("rank 1"));
  EXPECT_THAT(page, testing::Not(HasSubstr("of weights")));  // no such pass
  const std::string chunks = schedule_svg(make_schedule(PipelineSchedule::Interleaved, {.ranks = 2, .micros = 2, .chunks = 2}));
  for (const char* word : {">forward, chunk 0<", ">backward, chunk 1<", ">1<"}) EXPECT_THAT(chunks, HasSubstr(word));
}

}  // namespace
}  // namespace welkin::parallel
