// SPDX-License-Identifier: Apache-2.0
// The text of every complaint about values.
#include "config/validate/validate.h"

#include <algorithm>

#include "complaints.h"
#include "config/draft/known_names.h"
#include "core/text.h"

namespace welkin::config {
namespace {

using test::expect_complaints;
using test::resolve_error;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Validate, TypesAndRanges) {
  expect_complaints(test::kVitFile,
                    {
                        {{"embed_dim=abc"},
                         "[config] --set embed_dim: embed_dim wants an integer, is a string (abc). Meaning: width of a token."},
                        {{"num_iters=3e4"}, "num_iters wants an integer, is a number (3e4)"},
                        {{"residual_except=[tp]"},
                         "channels are left out of a residual that there is not: residual_except=[tp] (--set residual_except), "
                         "residual=false (default). Set residual: true"},
                        {{"lr=fast"}, "lr wants a number, is a string (fast)"},
                        {{"enable_jit=yes"}, "enable_jit wants true or false, is a string (yes)"},
                        {{"img_size=64"}, "img_size wants a list, is an integer (64)"},
                        {{"img_size=[64, x]"}, "img_size element 1 wants an integer, is a string (x)"},
                        {{"img_size=[64]"}, "img_size must have 2 elements, has 1: img_size=[64]"},
                        {{"img_size=[64"}, "--set img_size: the value is not valid: [64. Write a word, a number or a list"},
                        {{"seed=-1"}, "seed wants an integer of at least 0, is an integer (-1)"},
                        {{"depth=0"}, "--set depth: depth must be at least 1: depth=0. Meaning: number of blocks."},
                        {{"dropout=1"}, "dropout must be below 1: dropout=1.0"},
                        {{"loss_scale=0"}, "loss_scale must be above 0: loss_scale=0.0"},
                        {{"lr=.nan"}, "lr is not finite: lr=.nan"},
                        {{"num_data_workers=5000"}, "num_data_workers must be at most 4096"},
                        {{"betas=[0.9]"}, "betas must have 2 elements, has 1"},
                        {{"betas=[0.9, 1.5]"}, "betas element 1 must be below 1"},
                        {{"amp_mode=bf61"}, "amp_mode is none of none, fp16, bf16"},
                        {{"qkv=joimt"}, "qkv is none of joint, separate: qkv=joimt. Nearest: joint."},
                        {{"nan_policy=of"}, "nan_policy is none of off, error, mask, report, hole: nan_policy=of. Nearest: off."},
                        {{"shard_rule=even"}, "shard_rule is none of exact, padded, truncated: shard_rule=even."},
                        {{"run_num=caf\xe9"}, "--set run_num: run_num is no UTF-8: run_num="},
                        {{"resident=null"}, "resident is empty: resident=null. "},
                        {{"bad_samples=[skip]"}, "bad_samples is none of error, skip: bad_samples='[skip]'. Meaning: "},
                        {{"forcing=[moon]"}, "forcing element 0 is none of solar, solar_daily, calendar, coordinates"},
                    });
}

TEST(Validate, UnknownKeys) {
  EXPECT_THAT(resolve_error("base:\n  model: vit\n  num_epoch: 3\n  global_batch_size: 4\n  num_iters: 1\n"),
              HasSubstr("[config] run.yaml:3: unknown key: num_epoch=3. Nearest: num_epochs"));
  EXPECT_THAT(resolve_error(test::kVitFile, {"--set=qqqqqq=3"}),
              HasSubstr("--set qqqqqq: unknown key: qqqqqq=3. All keys are listed in docs/reference/keys.md."));
  EXPECT_THAT(resolve_error("base:\n  model: vit\n  lr_schedule: {start: 3}\n"),
              HasSubstr("run.yaml:3: unknown key: lr_schedule.start=3"));
  EXPECT_THAT(resolve_error("modl: vit\nbase: {}\n"), HasSubstr("run.yaml:1: unknown key: modl=vit. Nearest: model"));
  EXPECT_THAT(resolve_error(test::kVitFile, {"--set=options.a=x", "--set=options={b: [1]}"}),
              HasSubstr("--set options: options.b is a list"));
}

TEST(Validate, OneKeyUnderTwoNames) {
  EXPECT_THAT(
      resolve_error(
          "base:\n  model: vit\n  warmup: 3\n  lr_schedule: {warmup_steps: 4}\n  global_batch_size: 4\n  num_iters: 1\n"),
      HasSubstr(
          "run.yaml:4: lr_schedule.warmup_steps is given twice under different names, first at run.yaml:3. Remove one of them."));
}

TEST(Validate, TransformerShapes) {
  expect_complaints(
      test::kVitFile,
      {
          {{"num_heads=7"},
           "--set num_heads: num_heads does not divide embed_dim: num_heads=7 (--set num_heads), embed_dim=384 (default)"},
          {{"patch_size=7"},
           "patch_size does not divide img_size: patch_size=7 (--set patch_size), img_size=[360, 720] (default)"},
          {{"mlp_ratio=0.001"},
           "--set mlp_ratio: the MLP has no width, embed_dim times mlp_ratio rounds to 0: embed_dim=384 (default), "
           "mlp_ratio=0.001 (--set mlp_ratio). Choose a larger mlp_ratio"},
          {{"dataset=nbody"}, "the model does not take this data set: model=vit (run.yaml:2), dataset=nbody (--set dataset)"},
          {{"data_loader_config=lowmem"},
           "this data set has no such loader: data_loader_config=lowmem (--set data_loader_config), dataset=era5. "
           "Use pytorch, dali, synthetic."},
          {{"model=mine"},
           "the data set is not given: model=mine (--set model). Name it by the key `dataset`: era5, nbody or a plug-in's."},
          {{"compat=sc22"}, "that tutorial has another model: compat=sc22 (--set compat), model=vit (run.yaml:2)"},
          {{"limit_nsamples=3"},
           "the batch is larger than the data of an epoch: global_batch_size=4 (run.yaml:3), limit_nsamples=3 (--set "
           "limit_nsamples)"},
      });
}

TEST(Validate, BoxShapes) {
  expect_complaints(
      test::kUnetFile,
      {
          {{"data_size=48"},
           "data_size is not divisible by 2^scales: data_size=48 (--set data_size), scales=6. Use a multiple of 64, or fewer "
           "scales."},
          {{"scales=1"}, "scales must be 0 or at least 2: scales=1"},
          {{"box_size=[32, 32]"}, "the crop is larger than the box: data_size=64 (default), box_size=[32, 32] (--set box_size)"},
          {{"vector_channels_in=[1, 2]"}, "vectors have three components: vector_channels_in=[1, 2]"},
          {{"Nsamples=3"},
           "the batch is larger than the data of an epoch: global_batch_size=4 (run.yaml:3), Nsamples=3 (--set Nsamples)"},
          {{"enable_benchy=true", "enable_manual_profiling=true"},
           "enable_benchy and enable_manual_profiling exclude each other. Measure first"},
          {{"schedule=table", "lr_schedule.table=[0, 1, 0, 2]"}, "a table is step, rate, step, rate with rising steps"},
      });
  EXPECT_EQ(test::resolve_text(test::kUnetFile, {"--set=data_size=16", "--set=scales=4"}).config.model.scales, 4);
}

// They pass values on while they compute, so that a wrong one makes them all disagree with themselves.
TEST(Validate, RanksThatShareAModelAreNotRechecked) {
  for (const char* flag : {"--tensor_parallel=2", "--context_parallel=2"}) {
    EXPECT_THAT(resolve_error(test::kVitFile, {flag, "--recheck_interval=3"}, 2),
                HasSubstr("gradients are not computed twice with this: recheck_interval=3 (--recheck_interval), "));
  }
}

TEST(Validate, Mesh) {
  EXPECT_THAT(
      resolve_error(test::kVitFile, {"--tensor_parallel=3"}, 4),
      AllOf(HasSubstr("[config] 2 problems:"),
            HasSubstr("tensor_parallel does not divide num_heads: tensor_parallel=3 (--tensor_parallel)"),
            HasSubstr("tensor_parallel times context_parallel does not divide the number of processes: tensor_parallel=3 "
                      "(--tensor_parallel), context_parallel=1 (default), processes=4. Start a multiple of 3 processes")));
  EXPECT_THAT(resolve_error(test::kUnetFile, {"--spatial=1x3x1"}, 4),
              HasSubstr("tensor_parallel times context_parallel times the ranks of spatial does not divide the number of "
                        "processes: tensor_parallel=1 (default), context_parallel=1 (default), spatial=1x3x1 (--spatial), "
                        "processes=4. Start a multiple of 3 processes"));
  EXPECT_THAT(resolve_error(test::kUnetFile, {"--spatial=1x1x2", "--noddp"}, 2),
              HasSubstr("spatial does not go with this: spatial=1x1x2 (--spatial), noddp=true (--noddp). Leave one of them out"));
  for (const char* wrong : {"2", "1x2", "0x1x1", "1x1x2x1", "1x1x", "1x1x2000", "axbxc"}) {
    EXPECT_THAT(resolve_error(test::kUnetFile, {cat("--spatial=", wrong)}, 2),
                HasSubstr("wants ranks along depth, height and width as DxHxW"))
        << wrong;
  }
  EXPECT_THAT(resolve_error(test::kVitFile, {"--col_parallel_size=2"}), HasSubstr("col_parallel_size must be at most 1"));
  EXPECT_THAT(resolve_error(test::kVitFile, {"--parallel_order=tp-xx"}),
              HasSubstr("parallel_order names an axis that does not exist: parallel_order=tp-xx"));
  EXPECT_THAT(resolve_error(test::kVitFile, {"--parallel_order=tp-tp"}), HasSubstr("parallel_order names an axis twice"));
  EXPECT_EQ(resolve_text(test::kVitFile, {"--parallel_order=DP-Cp-TP", "--tensor_parallel=2"}, 2).config.parallel.parallel_order,
            "dp-cp-tp");  // as the tutorial's rank generator
  EXPECT_THAT(resolve_error(test::kVitFile, {"--parallel_order=cp-dp", "--tensor_parallel=2"}, 2),
              HasSubstr("parallel_order leaves out an axis that is larger than 1: parallel_order=cp-dp"));
}

TEST(Validate, Optimizers) {
  expect_complaints(
      test::kVitFile,
      {
          {{"optimizer=Lion", "optimizer_state=bf16"},
           "this optimizer keeps float32: optimizer_state=bf16 (--set optimizer_state), optimizer=Lion (--set optimizer). Only "
           "Adam and AdamW keep less"},
          {{"optimizer_state=4bit"}, "optimizer_state"},
          {{"ema_validate=true"}, "there is no moving average of weights to look at: ema_validate=true (--set ema_validate)"},
          {{"lamb_min_ratio=2", "lamb_max_ratio=1"}, "is above the largest quotient: lamb_min_ratio=2"},
          {{"ema_decay=1"}, "ema_decay must be"},
      });
  for (const char* cut : {"--tensor_parallel=2", "--shard=full"}) {
    for (const char* key : {"--set=optimizer_state=8bit", "--set=optimizer=Muon", "--set=optimizer=Adafactor"}) {
      EXPECT_NO_THROW(test::resolve_text(test::kVitFile, {cut, key}, 2)) << cut << " " << key;
    }
  }
  const OptimizerConfig lion = test::resolve_text(test::kVitFile, {"--set=optimizer=Lion"}).config.optimizer;
  EXPECT_EQ(lion.betas, (std::vector<double>{0.9, 0.99}));
  EXPECT_EQ(test::resolve_text(test::kVitFile, {"--set=optimizer=LAMB"}).config.optimizer.eps, 1e-6);
  EXPECT_EQ(test::resolve_text(test::kVitFile, {"--set=optimizer=LAMB", "--set=eps=1e-5"}).config.optimizer.eps, 1e-5);
  EXPECT_EQ(test::resolve_text(test::kVitFile, {"--set=optimizer=Muon"}).config.optimizer.momentum, 0.95);
}

TEST(Validate, EarlyStoppingIsAMetricAndANumber) {
  for (const char* flag : {"--early_stopping=val_loss", "--early_stopping=val_loss,1,2,3", "--early_stopping=[]x"}) {
    EXPECT_THAT(resolve_error(test::kVitFile, {flag}), HasSubstr("early_stopping")) << flag;
  }
  EXPECT_THAT(resolve_error(test::kVitFile, {"--early_stopping=val_loss"}),
              HasSubstr("early_stopping cannot be read, it is a metric, a number of validations, and optionally the least "
                        "improvement: early_stopping=[val_loss] (--early_stopping). Write for instance --early_stopping "
                        "val_loss,5."));
  EXPECT_THAT(resolve_error(test::kVitFile, {"--early_stopping=val_loss,0"}),
              HasSubstr("patience is a whole number of at least 1, not 0"));
  EXPECT_THAT(resolve_error(test::kVitFile, {"--early_stopping=val_loss,2.5"}),
              HasSubstr("patience is a whole number of at least 1, not 2.5"));
  EXPECT_THAT(resolve_error(test::kVitFile, {"--early_stopping=val_loss,2,-1"}),
              HasSubstr("min_delta is a number of at least 0, not -1"));
  EXPECT_THAT(resolve_error(test::kVitFile, {"--early_stopping=val_loss,2,nan"}),
              HasSubstr("min_delta is a number of at least 0, not nan"));
}

TEST(Validate, LengthAndBatchAreRequired) {
  EXPECT_THAT(resolve_error("base: {model: vit}\n"),
              AllOf(HasSubstr("the length of the run is not given: num_epochs and num_iters are both absent. Give one of them"),
                    HasSubstr("the batch size is not given: global_batch_size is absent")));
}

TEST(Validate, ALengthThatIsWrongIsNotCalledAbsent) {
  EXPECT_EQ(resolve_error(test::kVitFile, {"--num_iters=0"}),
            "[config] --num_iters: a run has at least one step: num_iters=0 (--num_iters). Give one of them, for instance "
            "--num_epochs 10.");
  for (const char* wrong : {"--num_iters=-3", "--num_iters=x"}) {
    EXPECT_THAT(resolve_error(test::kVitFile, {wrong}), AllOf(HasSubstr("--num_iters: "), Not(HasSubstr("problems"))));
  }
}

TEST(Validate, NothingFollowsFromAValueThatIsRejected) {
  for (const char* wrong : {"patch_size=0", "patch_size=x", "num_heads=0", "embed_dim=0", "tensor_parallel=0",
                            "global_batch_size=-2", "local_batch_size=0", "depth=0", "img_size=[0, 7]", "img_size=[7"}) {
    EXPECT_THAT(resolve_error("base: {model: vit, global_batch_size: 4, num_iters: 1, img_size: [12, 20], patch_size: 4, "
                              "embed_dim: 40, num_heads: 5}\n",
                              {cat("--set=", wrong)}),
                Not(HasSubstr("problems")));
  }
}

TEST(Validate, NamesOfTheRegistries) {
  const KnownNames known{.models = {"vit"},
                         .datasets = {"era5"},
                         .losses = {"relative_l2"},
                         .optimizers = {"Adam", "AdamW"},
                         .schedules = {"cosine"}};
  EXPECT_THAT(resolve_error(test::kVitFile, {"--set=optimizer=Adamm"}, 1, known),
              HasSubstr("--set optimizer: unknown name: optimizer=Adamm. Nearest: Adam, AdamW."));
  EXPECT_THAT(resolve_error(test::kVitFile, {"--set=loss=zzzzzzzz"}, 1, known),
              HasSubstr("unknown name: loss=zzzzzzzz. Known: relative_l2."));
  EXPECT_EQ(test::resolve_text(test::kVitFile, {"--set=optimizer=AdamW"}, 1, known).config.optimizer.optimizer, "AdamW");
}

TEST(Validate, TheLossOfAPlugInsModelIsTheOneOfItsRow) {
  KnownNames known;
  known.default_losses = {{"stencil", "huber"}};
  const std::string file = "base: {model: stencil, dataset: era5, global_batch_size: 4, num_iters: 1}\n";
  const Resolved resolved = test::resolve_text(file, {}, 1, known);
  EXPECT_EQ(resolved.config.loss.loss, "huber");
  EXPECT_EQ(resolved.origins.at("loss.loss").text, "from model stencil");
  EXPECT_EQ(test::resolve_text(file, {"--set=loss=l2"}, 1, known).config.loss.loss, "l2");
}

TEST(Validate, AllProblemsComeTogetherAndNoneTwice) {
  const std::string message = resolve_error(
      "base:\n  model: vit\n  embed_dimm: 3\n  dropout: 2\n  num_heads: x\n  global_batch_size: 4\n  num_iters: 1\n",
      {"--set=patch_size=7"});
  EXPECT_EQ(
      message,
      "[config] 4 problems:\n"
      "  run.yaml:3: unknown key: embed_dimm=3. Nearest: embed_dim.\n"
      "  run.yaml:5: num_heads wants an integer, is a string (x). Meaning: attention heads; divides embed_dim.\n"
      "  run.yaml:4: dropout must be below 1: dropout=2.0. Meaning: rate of dropout, attention dropout and, rising over the "
      "depth, drop-path.\n"
      "  --set patch_size: patch_size does not divide img_size: patch_size=7 (--set patch_size), img_size=[360, 720] "
      "(default). Choose a "
      "patch_size that divides both edges.");
}

TEST(Validate, ManyProblemsAreCounted) {
  std::string text = "base:\n  model: vit\n  global_batch_size: 4\n  num_iters: 1\n";
  for (int i = 0; i < 500; ++i) text += cat("  unknown", i, ": 1\n");
  const std::string message = resolve_error(text);
  EXPECT_THAT(message, HasSubstr("[config] 500 problems, of which the first 20:\n  run.yaml:5: unknown key: unknown0=1"));
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 20);
}

TEST(Validate, Health) {
  expect_complaints(test::kVitFile,
                    {{{"on_spike=skipp"}, "on_spike is none of off, warn, skip, rollback: on_spike=skipp. Nearest: skip."},
                     {{"on_spike=skip", "cuda_graph=true"},
                      "a recorded step does not look for spikes: on_spike=skip (--set on_spike), cuda_graph=true (--set "
                      "cuda_graph). Leave one of them out."},
                     {{"on_spike=rollback", "offload=[optimizer]", "offload_path=/tmp"},
                      "a copy in memory cannot be kept of what is offloaded: on_spike=rollback (--set on_spike), "
                      "offload=[optimizer] (--set offload). Take on_spike: skip."},
                     {{"on_spike=skip", "spike_lr_factor=0.5"},
                      "the rate is lowered for no update: spike_lr_factor=0.5 (--set spike_lr_factor), spike_lr_steps=0 "
                      "(default). Say for how many: spike_lr_steps: 50."},
                     {{"spike_window=4"}, "spike_window must be at least 8: spike_window=4"},
                     {{"slow_rank_factor=1"}, "slow_rank_factor must be above 1: slow_rank_factor=1.0"},
                     {{"recheck_interval=5", "cuda_graph=true"},
                      "gradients are not computed twice with this: recheck_interval=5 (--set recheck_interval), cuda_graph=true "
                      "(--set cuda_graph)"}});
}

}  // namespace
}  // namespace welkin::config
