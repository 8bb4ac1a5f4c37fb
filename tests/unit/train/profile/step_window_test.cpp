// SPDX-License-Identifier: Apache-2.0
// Which steps are recorded, and where the time of operators went.
#include "train/profile/step_window.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/error.h"
#include "number_close.h"
#include "train/profile/operator_table.h"

namespace welkin::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::pair<int64_t, int64_t> window_in(const std::optional<int64_t>& epoch, const std::vector<int64_t>& steps,
                                      const RunPlaces& run) {
  const StepWindow window = step_window(epoch, steps, run);
  return {window.begin, window.end};
}

TEST(StepWindow, IsWhatIsAskedForWhereTheRunHasIt) {
  const RunPlaces run{.steps_per_epoch = 10, .first = 0, .last = 34};
  EXPECT_EQ(window_in({}, {}, run), std::pair(0L, 10L));
  EXPECT_EQ(window_in(2, {3, 5}, run), std::pair(23L, 26L));
  EXPECT_EQ(window_in(3, {}, run), std::pair(30L, 35L)) << "the last epoch is cut short";
  EXPECT_EQ(step_window(2, {3, 5}, run).note, "");
  EXPECT_EQ(window_in({}, {}, {.steps_per_epoch = 10, .first = 17, .last = 34}), std::pair(17L, 20L)) << "a resumed run";
}

TEST(StepWindow, IsNeverEmpty) {
  const RunPlaces run{.steps_per_epoch = 10, .first = 4, .last = 12};
  for (const int64_t epoch : {0, 1, 3, 1000}) {
    for (const auto& steps : {std::vector<int64_t>{}, {0, 59}, {0, 0}, {9, 9}, {500, 600}}) {
      const StepWindow window = step_window(epoch, steps, run);
      EXPECT_GE(window.begin, run.first);
      EXPECT_LE(window.end, run.last + 1);
      EXPECT_LT(window.begin, window.end) << epoch;
    }
  }
  EXPECT_EQ(step_window(3, {0, 59}, run).note, "the window that was asked for is not in this run (epochs 0 to 1 of 10 steps)");
  EXPECT_EQ(window_in(3, {0, 59}, run), std::pair(10L, 13L));
  EXPECT_EQ(step_window(1, {1, 59}, run).note,
            "of the steps 1 to 59 that were asked for, what this run has of them (epochs 0 to 1 of 10 steps)");
  EXPECT_EQ(step_window(0, {2, 6}, run).note,
            "of the steps 2 to 6 that were asked for, what this run has of them (epochs 0 to 1 of 10 steps)");
  EXPECT_EQ(step_window(0, {0, 2}, run).note, "the window that was asked for is not in this run (epochs 0 to 1 of 10 steps)");
  EXPECT_EQ(step_window(1, {7, 9}, run).note, step_window(0, {0, 2}, run).note) << "the last epoch ends before";
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(window_in(1, {0, kMost}, run), std::pair(10L, 13L));
  EXPECT_EQ(window_in(kMost, {1, kMost}, run), std::pair(11L, 13L));
}

TEST(ProfileSchedule, HasThePhasesOfTorchs) {
  const ProfileSchedule schedule = parse_profile_schedule("wait=1,warmup=2,active=2,repeat=2");
  std::string phases;
  for (int64_t i = 0; i < 12; ++i) phases += "-wRS"[static_cast<size_t>(phase_of(schedule, i))];
  EXPECT_EQ(phases, "-wwRS-wwRS--");
  EXPECT_EQ(phase_of({.wait = 0, .warmup = 0, .active = 1, .repeat = 0}, 1000), ProfilePhase::RecordAndSave);
  const ProfileSchedule cut = fitted({.wait = 5, .warmup = 2, .active = 3, .repeat = 1}, 4);
  EXPECT_EQ(cut.wait, 0);
  EXPECT_EQ(cut.warmup, 1);
  EXPECT_EQ(cut.active, 3);
  EXPECT_EQ(fitted({}, 1).active, 1);
}

TEST(ProfileOptions, AreReadAndRefused) {
  const ProfileOptions options =
      parse_profile_options({{"profile", ""}, {"timeline", "true"}, {"profile_epoch", "3"}, {"profile_steps", "0-59"}});
  EXPECT_EQ(options.profile, "on");
  EXPECT_TRUE(options.timeline);
  EXPECT_EQ(options.epoch, 3);
  EXPECT_THAT(options.steps, ElementsAre(0, 59));
  EXPECT_THAT(parse_profile_options({{"profile_steps", "7"}}).steps, ElementsAre(7, 7));
  for (const char* bad : {"9-3", "-1", "a", "1-", "1-2-3", ""}) {
    EXPECT_THROW(parse_profile_options({{"profile_steps", bad}}), ConfigError) << bad;
  }
  EXPECT_THAT(
      [] {
        parse_profile_options({{"profile", "wait=1,activ=2"}});
      },
      ThrowsMessage<ConfigError>(
          HasSubstr("[profile] no schedule of the profiler: profile=wait=1,activ=2, unknown part: activ.")));
  EXPECT_THAT(
      [] {
        parse_profile_options({{"profile", "active=0"}});
      },
      ThrowsMessage<ConfigError>(HasSubstr("active must be at least 1")));
  EXPECT_THAT(
      [] {
        parse_profile_options({{"profile", "wait=1,wait=2"}});
      },
      ThrowsMessage<ConfigError>(HasSubstr("profile=wait=1,wait=2, given twice: wait.")));
  for (const char* bad : {"wait", "wait=", "wait=-1", "wait=1,", "wait=x", "wait=1,active=2,wait=2", "repeat=1,repeat=1"})
    EXPECT_THROW(parse_profile_options({{"profile", bad}}), ConfigError) << bad;
}

TEST(OperatorTable, ClassesAreThoseOfTheLecture) {
  const std::pair<const char*, OperatorKind> names[] = {{"aten::addmm", OperatorKind::Contraction},
                                                        {"aten::convolution", OperatorKind::Contraction},
                                                        {"welkin::attention_backward", OperatorKind::Contraction},
                                                        {"aten::native_layer_norm", OperatorKind::Normalisation},
                                                        {"aten::_softmax", OperatorKind::Normalisation},
                                                        {"aten::gelu", OperatorKind::ElementWise},
                                                        {"aten::_fused_adam_", OperatorKind::ElementWise},
                                                        {"aten::copy_", OperatorKind::Movement},
                                                        {"gloo:all_reduce", OperatorKind::Communication},
                                                        {"something", OperatorKind::Other}};
  for (const auto& [name, kind] : names) EXPECT_EQ(name_of(kind_of_operator(name)), name_of(kind)) << name;
  EXPECT_TRUE(uses_matrix_units("sm90_xmma_gemm_bf16bf16_tensorop"));
  EXPECT_FALSE(uses_matrix_units("vectorized_elementwise_kernel"));
}

// What traces of both models and the losses hold: a short word in a longer one says nothing.
TEST(OperatorTable, NamesAreReadByTheirWords) {
  const std::pair<OperatorKind, std::vector<const char*>> rows[] = {
      {OperatorKind::Contraction,
       {"aten::addmm", "aten::mm", "aten::bmm", "aten::baddbmm", "aten::matmul", "aten::linear", "aten::conv3d",
        "aten::_convolution", "aten::conv_transpose3d", "aten::mkldnn_convolution", "aten::convolution_backward",
        "aten::_scaled_dot_product_flash_attention_for_cpu", "welkin::attention", "welkin::convolution_backward",
        "ampere_sgemm_128x64_tn", "nvjet_hsh_128x192"}},
      {OperatorKind::Normalisation,
       {"aten::native_layer_norm", "aten::native_layer_norm_backward", "aten::native_batch_norm", "aten::_log_softmax"}},
      {OperatorKind::ElementWise,
       {"aten::tanh",
        "aten::tanh_backward",
        "aten::threshold_backward",
        "aten::sgn",
        "aten::sign",
        "aten::relu_",
        "aten::leaky_relu_",
        "aten::gelu_backward",
        "aten::add_",
        "aten::mul",
        "aten::div_",
        "aten::sub",
        "aten::sum",
        "aten::pow",
        "aten::sqrt",
        "aten::abs",
        "aten::exp",
        "aten::eq",
        "aten::ge",
        "aten::le",
        "aten::isfinite",
        "aten::logical_not",
        "aten::maximum",
        "aten::clamp_min_",
        "aten::square",
        "aten::nan_to_num",
        "aten::norm",
        "aten::linalg_vector_norm",
        "aten::where",
        "aten::upsample_trilinear3d",
        "welkin::bias_gelu",
        "welkin::philox_dropout",
        "aten::cumsum",
        "void at::native::vectorized_elementwise_kernel<4, at::native::tanh_kernel_cuda>"}},
      {OperatorKind::Movement,
       {"aten::t",
        "aten::to",
        "aten::_to_copy",
        "aten::transpose",
        "aten::copy_",
        "aten::clone",
        "aten::cat",
        "aten::stack",
        "aten::expand",
        "aten::squeeze",
        "aten::unsqueeze",
        "aten::_unsafe_view",
        "aten::view_as",
        "aten::narrow",
        "aten::slice",
        "aten::permute",
        "aten::empty_like",
        "aten::new_empty_strided",
        "aten::zeros_like",
        "aten::fill_",
        "aten::as_strided_",
        "aten::scatter",
        "aten::gather",
        "aten::constant_pad_nd",
        "aten::unflatten",
        "detach",
        "aten::resize_",
        "aten::ones_like",
        "aten::_reshape_alias",
        "aten::index_select",
        "aten::select_backward",
        "Memcpy DtoD (Device -> Device)",
        "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda>"}},
      {OperatorKind::Communication, {"c10d::allreduce_", "gloo:all_reduce", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"}},
      {OperatorKind::Other, {"aten::item", "aten::result_type", "TBackward0", "aten::_local_scalar_dense"}}};
  for (const auto& [kind, names] : rows) {
    for (const char* name : names) EXPECT_EQ(name_of(kind_of_operator(name)), name_of(kind)) << name;
  }
}

TEST(OperatorTable, AnOperatorsTimeIsItsOwn) {
  const auto ms = [](uint64_t n) { return n * 1'000'000; };
  const OperatorSummary summary = summarise({{"aten::linear", 1, ms(0), ms(10)},
                                             {"aten::addmm", 1, ms(1), ms(9)},
                                             {"aten::copy_", 1, ms(2), ms(3)},
                                             {"aten::gelu", 1, ms(10), ms(14)},
                                             {"aten::gelu", 2, ms(0), ms(2)}});
  EXPECT_TRUE(tests::close(summary.total_ms, 16, kFp64, 16));
  ASSERT_EQ(summary.rows.size(), 4U);
  EXPECT_EQ(summary.rows[0].name, "aten::addmm");
  EXPECT_TRUE(tests::close(summary.rows[0].own_ms, 7, kFp64, 16));
  EXPECT_EQ(summary.rows[1].name, "aten::gelu");
  EXPECT_EQ(summary.rows[1].calls, 2);
  const std::string table = operator_table(summary);
  EXPECT_THAT(table, ::testing::ContainsRegex("contraction +2 +9.00 +56.25 %"));
  EXPECT_THAT(table, ::testing::ContainsRegex("element-wise +2 +6.00 +37.50 %"));
  EXPECT_FALSE(summary.on_gpu);
}

TEST(OperatorTable, OnAGpuTheRowsAreKernels) {
  const OperatorSummary summary =
      summarise({{"aten::mm", 1, 0, 100, false}, {"sm90_gemm_tensorop", 7, 10, 40, true}, {"elementwise", 7, 40, 50, true}});
  EXPECT_TRUE(summary.on_gpu);
  ASSERT_EQ(summary.rows.size(), 2U);
  EXPECT_THAT(operator_table(summary), HasSubstr("tensor cores): 75.00 % of the kernels' time"));
}

}  // namespace
}  // namespace welkin::train
