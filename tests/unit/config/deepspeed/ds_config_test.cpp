// SPDX-License-Identifier: Apache-2.0
// DeepSpeed's JSON: what its keys become, "auto", the relations of batch sizes, contradictions, and files that are no such file.
#include "config/deepspeed/ds_config.h"

#include <fstream>
#include <iterator>

#include "config/deepspeed/ds_keys.h"
#include "config/schema/key.h"
#include "core/text.h"
#include "harness.h"

namespace welkin::config {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kModel[] = "base:\n  model: vit\n  global_batch_size: 16\n  num_iters: 1000\n  optimizer: Adam\n  lr: 5.E-4\n";

Resolved with_json(const std::string& json, std::vector<std::string> flags = {}, int64_t world_size = 2,
                   const std::string& file = kModel) {
  const test::YamlFile folder(file);
  std::ofstream("ds.json") << json;
  flags.insert(flags.begin(), {"--yaml_config=run.yaml", "--ds_config=ds.json"});
  return resolve(test::command_line(flags), world_size);
}

std::string json_error(const std::string& json, const std::vector<std::string>& flags = {}, int64_t world_size = 2) {
  return test::config_error([&] { with_json(json, flags, world_size); });
}

// As in Hugging Face's documentation of its DeepSpeed integration.
constexpr char kHuggingFaceZero2[] = R"({
    "fp16": {
        "enabled": "auto",
        "loss_scale": 0,
        "loss_scale_window": 1000,
        "initial_scale_power": 16,
        "hysteresis": 2,
        "min_loss_scale": 1
    },
    "optimizer": {
        "type": "AdamW",
        "params": {"lr": "auto", "betas": "auto", "eps": "auto", "weight_decay": "auto"}
    },
    "scheduler": {
        "type": "WarmupLR",
        "params": {"warmup_min_lr": "auto", "warmup_max_lr": "auto", "warmup_num_steps": "auto"}
    },
    "zero_optimization": {
        "stage": 2,
        "offload_optimizer": {"device": "none", "pin_memory": true},
        "allgather_partitions": true,
        "allgather_bucket_size": 2e8,
        "overlap_comm": true,
        "reduce_scatter": true,
        "reduce_bucket_size": 2e8,
        "contiguous_gradients": true
    },
    "gradient_accumulation_steps": "auto",
    "gradient_clipping": "auto",
    "steps_per_print": 2000,
    "train_batch_size": "auto",
    "train_micro_batch_size_per_gpu": "auto",
    "wall_clock_breakdown": false
})";

TEST(DsConfig, Zero2WithAutosTakesTheRestFromOurKeys) {
  const Resolved resolved = with_json(kHuggingFaceZero2, {"--set", "clip_norm=0.5", "--amp_mode=bf16", "--set", "warmup=10"});
  const RunConfig& config = resolved.config;
  EXPECT_EQ(config.parallel.shard, ShardStage::Gradients);
  EXPECT_EQ(config.parallel.bucket_cap_mb, 763);  // 2e8 elements of 4 bytes: 762.9 MiB
  EXPECT_EQ(config.optimizer.optimizer, "AdamW");
  EXPECT_EQ(config.optimizer.lr, 5e-4);
  EXPECT_EQ(config.optimizer.clip_norm, 0.5);
  EXPECT_EQ(config.precision.amp_mode, AmpMode::Bf16);
  EXPECT_EQ(config.precision.loss_scale, 65536);
  EXPECT_EQ(config.precision.loss_scale_window, 1000);
  EXPECT_EQ(config.schedule.schedule, "constant");
  EXPECT_EQ(config.schedule.warmup_steps, 10);
  EXPECT_EQ(config.schedule.warmup_form, WarmupForm::Log);
  EXPECT_EQ(config.output.log_every_n_steps, 2000);
  EXPECT_EQ(config.loop.global_batch_size, 16);
  EXPECT_EQ(resolved.origins.at("parallel.shard").text, "ds.json:19 zero_optimization.stage");
  const std::string notes = join(resolved.notes, "\n");
  EXPECT_THAT(notes, HasSubstr("ds.json: without effect here (docs/reference/ds_config.md): fp16.hysteresis, "));
  EXPECT_THAT(notes, HasSubstr("zero_optimization.offload_optimizer.pin_memory"));
  EXPECT_THAT(notes, HasSubstr("ds.json: auto, as our own keys say: fp16.enabled, optimizer.params.lr, "));
}

TEST(DsConfig, LambHasDeepSpeedsBoundsOfItsQuotient) {
  const auto bounds = [](const std::string& params) {
    const OptimizerConfig optimizer =
        with_json(R"({"optimizer": {"type": "Lamb", "params": {)" + params + "}}}", {}).config.optimizer;
    return std::pair(optimizer.lamb_min_ratio, optimizer.lamb_max_ratio);
  };
  EXPECT_EQ(bounds(""), std::pair(0.01, 10.0));
  EXPECT_EQ(bounds(R"("max_coeff": 0.3)"), std::pair(0.01, 0.3));
  EXPECT_EQ(bounds(R"("min_coeff": 0, "max_coeff": "auto")"), std::pair(0.0, 0.0)) << "our own key says none";
}

// As in DeepSpeed's tutorial on ZeRO, with a batch and a schedule of its own.
constexpr char kZero3[] = R"({
	"train_batch_size": 32,
	"gradient_accumulation_steps": 4,
	"bf16": {"enabled": true},
	"optimizer": {"type": "Adam", "params": {"lr": 1e-3, "betas": [0.8, 0.999], "eps": 1e-8, "weight_decay": 3e-7}},
	"scheduler": {"type": "WarmupDecayLR",
		"params": {"warmup_min_lr": 1e-5, "warmup_max_lr": 0.002, "warmup_num_steps": 100, "warmup_type": "linear", "total_num_steps": 1000}},
	"gradient_clipping": 1.0,
	"communication_data_type": "bf16",
	"zero_optimization": {"stage": 3, "stage3_max_live_parameters": 1e9, "stage3_prefetch_bucket_size": 0,
		"reduce_bucket_size": 1e6, "sub_group_size": 1e9, "mics_shard_size": 2},
	"activation_checkpointing": {"partition_activations": false, "number_checkpoints": 3},
	"csv_monitor": {"enabled": true, "output_path": "out", "job_name": "j"},
	"tensorboard": {"enabled": true},
	"flops_profiler": {"enabled": true, "profile_step": 1}
})";

TEST(DsConfig, Zero3SetsOurKeys) {
  const RunConfig config = with_json(kZero3).config;
  EXPECT_EQ(config.parallel.shard, ShardStage::Full);
  EXPECT_EQ(config.parallel.shard_prefetch, 0);
  EXPECT_EQ(config.parallel.shard_group, "2");
  EXPECT_EQ(config.parallel.bucket_cap_mb, 4);
  EXPECT_EQ(config.parallel.compress_gradients, GradientDtype::Bf16);
  EXPECT_EQ(config.loop.global_batch_size, 32);
  EXPECT_EQ(config.loop.micro_batch_size, 4);
  EXPECT_EQ(config.loop.activation_checkpointing, CheckpointedPart::Blocks);
  EXPECT_EQ(config.loop.activation_checkpointing_blocks, 3);
  EXPECT_EQ(config.precision.amp_mode, AmpMode::Bf16);
  EXPECT_EQ(config.optimizer.optimizer, "AdamW");  // DeepSpeed's Adam decays as AdamW does
  EXPECT_EQ(config.optimizer.betas, (std::vector<double>{0.8, 0.999}));
  EXPECT_EQ(config.optimizer.weight_decay, 3e-7);
  EXPECT_EQ(config.optimizer.clip_norm, 1.0);
  EXPECT_EQ(config.optimizer.lr, 0.002);  // the scheduler's stands above the optimizer's
  EXPECT_EQ(config.schedule.start_lr, 0.002);
  EXPECT_EQ(config.schedule.schedule, "linear");
  EXPECT_EQ(config.schedule.warmup_start_lr, 1e-5);
  EXPECT_EQ(config.schedule.end_lr, 1e-5);
  EXPECT_EQ(config.schedule.warmup_form, WarmupForm::Linear);
  EXPECT_TRUE(config.output.csv);
}

TEST(DsConfig, SchedulersBecomeOurSchedules) {
  const ScheduleConfig cosine = with_json(R"({"optimizer": {"type": "Adam", "params": {"lr": 0.01, "adam_w_mode": false}},
    "scheduler": {"type": "WarmupCosineLR", "params": {"total_num_steps": "auto", "cos_min_ratio": 0.1, "warmup_num_steps": 5}}})")
                                    .config.schedule;
  EXPECT_EQ(cosine.schedule, "cosine");
  EXPECT_DOUBLE_EQ(cosine.end_lr, 0.001);
  EXPECT_EQ(cosine.warmup_steps, 5);
  const ScheduleConfig cycle = with_json(R"({"scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 1e-4,
    "cycle_max_lr": 1e-3, "cycle_first_step_size": 100}}})")
                                   .config.schedule;
  EXPECT_EQ(cycle.schedule, "table");
  EXPECT_EQ(cycle.table, (std::vector<double>{0, 1e-4, 100, 1e-3, 200, 1e-4}));
}

TEST(DsConfig, PlainAdamIsAskedForByName) {
  const std::string json = R"({"optimizer": {"type": "Adam", "params": {"adam_w_mode": false}}})";
  EXPECT_EQ(with_json(json).config.optimizer.optimizer, "Adam");
}

TEST(DsConfig, ALossScaleThatIsGivenStays) {
  const PrecisionConfig precision = with_json(R"({"fp16": {"enabled": true, "loss_scale": 128}})").config.precision;
  EXPECT_EQ(precision.amp_mode, AmpMode::Fp16);
  EXPECT_EQ(precision.loss_scale, 128);
  EXPECT_EQ(precision.loss_scale_min, 128);
}

TEST(DsConfig, AModeThatIsOffIsTurnedOff) {
  const std::string json = R"({"bf16": {"enabled": false}})";
  const std::string file = cat(kModel, "  amp_mode: ");
  EXPECT_EQ(with_json(json, {}, 2, file + "bf16\n").config.precision.amp_mode, AmpMode::None);
  EXPECT_EQ(with_json(json, {}, 2, file + "fp16\n").config.precision.amp_mode, AmpMode::Fp16);
  EXPECT_THAT(json_error(json, {"--amp_mode=bf16"}),
              HasSubstr("ds.json:1 bf16.enabled: contradicts the command line: amp_mode=none, --amp_mode bf16"));
}

TEST(DsConfig, BatchSizesFollowFromEachOther) {
  const auto batch = [](const std::string& json) {
    const LoopConfig loop = with_json(json).config.loop;
    return std::pair(loop.global_batch_size, loop.micro_batch_size.samples);
  };
  EXPECT_EQ(batch(R"({"train_micro_batch_size_per_gpu": 3})"), std::pair(int64_t{6}, int64_t{3}));
  EXPECT_EQ(batch(R"({"train_micro_batch_size_per_gpu": 3, "gradient_accumulation_steps": 2})"),
            std::pair(int64_t{12}, int64_t{3}));
  EXPECT_EQ(batch(R"({"train_micro_batch_size_per_gpu": 2, "train_batch_size": "auto"})"), std::pair(int64_t{16}, int64_t{2}));
  EXPECT_EQ(batch(R"({"gradient_accumulation_steps": 4})"), std::pair(int64_t{16}, int64_t{2}));
  EXPECT_EQ(batch(R"({"train_batch_size": 8})"), std::pair(int64_t{8}, int64_t{0}));
  EXPECT_THAT(json_error(R"({"train_batch_size": 32, "train_micro_batch_size_per_gpu": 3, "gradient_accumulation_steps": 4})"),
              HasSubstr("the batch is not the product of its parts: train_batch_size=32, train_micro_batch_size_per_gpu=3, "
                        "gradient_accumulation_steps=4, data-parallel ranks=2. Leave one of the parts out"));
  EXPECT_THAT(json_error(R"({"train_micro_batch_size_per_gpu": 3, "train_batch_size": "auto"})"),
              HasSubstr("global_batch_size=16, train_micro_batch_size_per_gpu=3, data-parallel ranks=2"));
}

TEST(DsConfig, FlagsThatContradictAreNamed) {
  EXPECT_THAT(
      json_error(R"({"zero_optimization": {"stage": 2}})", {"--shard=full"}),
      HasSubstr("ds.json:1 zero_optimization.stage: contradicts the command line: shard=gradients, --shard full. Give only"));
  EXPECT_EQ(with_json(R"({"zero_optimization": {"stage": 3}})", {"--shard=full"}).config.parallel.shard, ShardStage::Full);
  EXPECT_THAT(json_error(R"({"optimizer": {"params": {"lr": 1e-3}}})", {"--set", "lr_schedule.start_lr=2e-3"}),
              HasSubstr("contradicts the command line: lr=0.001, --set lr_schedule.start_lr 2e-3"));
  EXPECT_THAT(json_error(R"({"train_batch_size": 8})", {"--local_batch_size=2"}),
              HasSubstr("contradicts the command line: global_batch_size=8, --local_batch_size 2"));
  EXPECT_THAT(json_error(R"({"scheduler": {"type": "WarmupLR", "params": {"total_num_steps": 5}}})"),
              HasSubstr("a schedule ends with the run: total_num_steps=5, num_iters=1000 (run.yaml:4)"));
}

TEST(DsConfig, WhatCannotBeDoneIsAnError) {
  EXPECT_THAT(json_error(R"({"zero_optimization": {"stage": 3, "cpu_offload_params": true}})"),
              HasSubstr("zero_optimization.cpu_offload_params cannot be done here: true. An older name: say offload_param"));
  EXPECT_THAT(json_error(R"({"optimizer": {"type": "OneBitAdam"}})"),
              HasSubstr("optimizer.type is not here: OneBitAdam. Use Adam or Lamb with communication_data_type: bf16"));
  EXPECT_THAT(json_error(R"({"scheduler": {"type": "LRRangeTest"}})"), HasSubstr("Use welkin train --find_lr"));
  EXPECT_THAT(json_error(R"({"fp16": {"enabled": true}, "bf16": {"enabled": true}})"),
              HasSubstr("bf16.enabled is true, and so is fp16.enabled"));
  EXPECT_NO_THROW(with_json(R"({"wandb": {"enabled": false}, "elasticity": {}, "amp": {"enabled": false, "opt_level": "O1"}})"));
}

TEST(DsConfig, OptimizerStatesAreOffloaded) {
  const auto offload = [](const std::string& section) {
    return with_json(cat(R"({"zero_optimization": {"stage": 1, "offload_optimizer": )", section, "}}")).config.backend;
  };
  EXPECT_EQ(offload(R"({"device": "cpu", "pin_memory": true})").offload, std::vector<std::string>{"optimizer"});
  EXPECT_EQ(offload(R"({"device": "cpu"})").offload_path, "");
  EXPECT_EQ(offload(R"({"device": "nvme", "nvme_path": "/local", "buffer_count": 4})").offload_path, "/local");
  EXPECT_TRUE(offload(R"({"device": "none", "nvme_path": null})").offload.empty());
  EXPECT_THAT(json_error(R"({"zero_optimization": {"offload_optimizer": {"device": "nvme"}}})"),
              HasSubstr("zero_optimization.offload_optimizer.device is nvme, without a folder. Give nvme_path"));
  EXPECT_THAT(json_error(R"({"zero_optimization": {"offload_optimizer": {"device": "tape"}}})"),
              HasSubstr("is none of none, cpu, nvme: tape"));
}

TEST(DsConfig, WeightsAndActivationsAreOffloaded) {
  const auto weights =
      with_json(R"({"zero_optimization": {"stage": 3, "offload_param": {"device": "nvme", "nvme_path": "/x"}}})");
  EXPECT_EQ(weights.config.backend.offload, std::vector<std::string>{"parameters"});
  EXPECT_EQ(weights.config.backend.offload_path, "/x");
  const auto all = with_json(R"({"activation_checkpointing": {"cpu_checkpointing": true}, "zero_optimization": {"stage": 3,
      "offload_optimizer": {"device": "nvme", "nvme_path": "/x"}, "offload_param": {"device": "nvme", "nvme_path": "/x"}}})");
  EXPECT_EQ(all.config.backend.offload, (std::vector<std::string>{"optimizer", "parameters", "activations"}));
  EXPECT_TRUE(with_json(R"({"activation_checkpointing": {"cpu_checkpointing": false}})").config.backend.offload.empty());
  EXPECT_THAT(json_error(R"({"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": "/x"},
      "offload_param": {"device": "nvme", "nvme_path": "/y"}}})"),
              HasSubstr("zero_optimization.offload_param.nvme_path is another folder than that of the optimizer: /y, /x"));
}

TEST(DsConfig, StagesAndTrackersAreOurs) {
  EXPECT_EQ(with_json(R"({"wandb": {"enabled": true, "project": "p"}})").config.output.track, std::vector<std::string>{"wandb"});
  EXPECT_EQ(with_json(R"({"pipeline": {"stages": 1}})").config.parallel.pipeline_parallel, 1);
  EXPECT_THAT(json_error(R"({"pipeline": {"stages": 3}})"), HasSubstr("pipeline_parallel=3"));
}

TEST(DsConfig, UnknownKeysAreErrorsWithTheNearest) {
  EXPECT_THAT(json_error(R"({"zero_optimization": {"stages": 2}})"),
              HasSubstr("zero_optimization.stages is unknown. Nearest: zero_optimization.stage"));
  EXPECT_THAT(json_error(R"({"zero_optimization": 2})"), HasSubstr("zero_optimization wants a mapping, is an integer"));
  EXPECT_THAT(json_error(R"({"zero_optimization": {"stage": 4}})"),
              HasSubstr("zero_optimization.stage is none of 0, 1, 2, 3: 4"));
  EXPECT_THAT(json_error(R"({"train_batch_size": 1e300})"), HasSubstr("train_batch_size wants a whole number: 1e300"));
  EXPECT_THAT(json_error(R"({"train_batch_size": -4})"), HasSubstr("wants a whole number: -4"));
  EXPECT_THAT(json_error(R"({"gradient_clipping": "much"})"), HasSubstr("gradient_clipping wants a number: much"));
}

TEST(DsConfig, FilesThatAreNoJsonAreRefused) {
  EXPECT_THAT(json_error("stage: 2\n"), HasSubstr("ds.json: not a JSON object. Give the file that DeepSpeed takes"));
  EXPECT_THAT(json_error(""), HasSubstr("not a JSON object"));
  EXPECT_THAT(json_error(R"({"train_batch_size": 8)"), HasSubstr("ds.json"));
  EXPECT_THAT(json_error(R"({"a": 1, "a": 2})"), HasSubstr("ds.json"));
  std::string deep = R"({"zero_optimization": )";
  for (int i = 0; i < 100; ++i) deep += R"({"x": )";
  EXPECT_THAT(json_error(deep + "1" + std::string(101, '}')), HasSubstr("ds.json"));
  EXPECT_THAT(test::config_error([] { test::resolve_text(kModel, {"--ds_config=none.json"}); }),
              HasSubstr("the file cannot be read: --ds_config none.json"));
}

TEST(DsKeys, TargetsAreKeysOfOurs) {
  for (const DsKey& key : ds_keys()) {
    if (key.rule == DsRule::Key || key.rule == DsRule::Combined) {
      EXPECT_NE(find_key(key.target), nullptr) << key.name;
    }
  }
}

TEST(DsKeys, PageHasTheTable) {
  std::ifstream file(test::source_folder() / "docs/reference/ds_config.md");
  const std::string page{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_THAT(page, HasSubstr("\n" + ds_markdown())) << ds_markdown();
}

}  // namespace
}  // namespace welkin::config
