// SPDX-License-Identifier: Apache-2.0
// The keys whose value is one of a closed set, as enums, and the spelling of the values in files, flags and messages: kNames<E>
// has the names in the order of the enumerators, joined by '|'. Reading, checking, printing, help and nearest names follow from
// it. To add such a key: an enum here with its names, the enum in the list of Field (key.h), a field in run_config.h, a row in
// keys_<component>.cpp.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <type_traits>

namespace welkin::config {

template <typename E>
inline constexpr std::string_view kNames = "";

enum class Tutorial { None, Sc21, Sc22, Sc23, Dl4sci25 };
template <>
inline constexpr std::string_view kNames<Tutorial> = "none|sc21|sc22|sc23|dl4sci25";

enum class AmpMode { None, Fp16, Bf16 };
template <>
inline constexpr std::string_view kNames<AmpMode> = "none|fp16|bf16";

enum class NonFiniteAction { Stop, Skip };
template <>
inline constexpr std::string_view kNames<NonFiniteAction> = "stop|skip";

enum class SpikeAction { Off, Warn, Skip, Rollback };  // on a loss or gradient far above the others
template <>
inline constexpr std::string_view kNames<SpikeAction> = "off|warn|skip|rollback";

enum class BadSample { Error, Skip };  // the effect of a sample that cannot be read
template <>
inline constexpr std::string_view kNames<BadSample> = "error|skip";

// The effect of NaN and infinity in a sample; Off does not look. Hole: NaN is a point without a value, which has no weight.
enum class NanPolicy { Off, Error, Mask, Report, Hole };
template <>
inline constexpr std::string_view kNames<NanPolicy> = "off|error|mask|report|hole";

enum class LevelWeighting { Equal, Makani, GraphCast };  // of the channels in the loss: channel_weights.h
template <>
inline constexpr std::string_view kNames<LevelWeighting> = "equal|makani|graphcast";

enum class Residence { None, Host, Device };  // place of all values of the data for the whole run
template <>
inline constexpr std::string_view kNames<Residence> = "none|host|device";

enum class Augmentation { None, Flips, Rotations, Octahedral, Tutorial };  // Flips: of axes 1 and 2
template <>
inline constexpr std::string_view kNames<Augmentation> = "none|flips|rotations|octahedral|tutorial";

enum class RateScaling { None, Sqrt, Linear };  // of the rate with global_batch_size / base_batch_size
template <>
inline constexpr std::string_view kNames<RateScaling> = "none|sqrt|linear";

enum class WarmupForm { Linear, Log };  // of the ramp of the rate
template <>
inline constexpr std::string_view kNames<WarmupForm> = "linear|log";

enum class CropRule { Inclusive, Exclusive };  // whether the last start of a crop is drawn
template <>
inline constexpr std::string_view kNames<CropRule> = "inclusive|exclusive";

enum class PairRule { EachFile, FirstFile };  // the year whose length gives the number of pairs of a year
template <>
inline constexpr std::string_view kNames<PairRule> = "each_file|first_file";

enum class ValidationRule { EverySample, Drawn, FullBatches };
template <>
inline constexpr std::string_view kNames<ValidationRule> = "every_sample|drawn|full_batches";

enum class ShardRule { Exact, Padded, Truncated };  // how an epoch's samples are split to ranks: data/sample/epoch_plan.h
template <>
inline constexpr std::string_view kNames<ShardRule> = "exact|padded|truncated";

enum class LengthRule { Exact, WholeEpochs };
template <>
inline constexpr std::string_view kNames<LengthRule> = "exact|whole_epochs";

enum class RateRule { Updates, Iterations };  // the unit that the schedule counts
template <>
inline constexpr std::string_view kNames<RateRule> = "updates|iterations";

enum class FirstBatchRule { Kept, Consumed };  // whether the initial loss takes the first batch out of the first epoch
template <>
inline constexpr std::string_view kNames<FirstBatchRule> = "kept|consumed";

enum class Tf32 { On, Off };
template <>
inline constexpr std::string_view kNames<Tf32> = "on|off";

enum class AttentionForm { Auto, Flash, MemoryEfficient, CuDnn, Math };  // torch's attention on a GPU; Auto is measured
template <>
inline constexpr std::string_view kNames<AttentionForm> = "auto|flash|memory_efficient|cudnn|math";

enum class Gemm { Auto, Mkl, OneDnn };  // library of float32 matmuls on a CPU; Auto goes by the processor
template <>
inline constexpr std::string_view kNames<Gemm> = "auto|mkl|onednn";

enum class MatmulPrecision { Highest, High, Medium };  // of float32 operands on a CPU
template <>
inline constexpr std::string_view kNames<MatmulPrecision> = "highest|high|medium";

enum class InstructionSet { Auto, Portable, Avx2, Avx512, Amx };  // of our CPU kernels; Auto is the best there is
template <>
inline constexpr std::string_view kNames<InstructionSet> = "auto|portable|avx2|avx512|amx";

enum class ContextMode { AllGather, Ring, AllToAll, Auto };  // attention over tokens that are split over cp
template <>
inline constexpr std::string_view kNames<ContextMode> = "all_gather|ring|all_to_all|auto";

enum class ContextIo { Sharded, Gathered };  // the part of a sample that context-parallel ranks read, embed and score
template <>
inline constexpr std::string_view kNames<ContextIo> = "sharded|gathered";

enum class PipelineSchedule { GPipe, OneForwardOneBackward, Interleaved, ZeroBubble };  // order of a pipeline's passes
template <>
inline constexpr std::string_view kNames<PipelineSchedule> = "gpipe|1f1b|interleaved|zero_bubble";

enum class WireupInfo { Env, Mpi };
template <>
inline constexpr std::string_view kNames<WireupInfo> = "env|mpi";

enum class WireupStore { Tcp, File, None };  // how ranks meet
template <>
inline constexpr std::string_view kNames<WireupStore> = "tcp|file|none";

enum class GradientDtype { Same, Bf16, Fp16 };  // of the gradient all-reduce; stored gradients keep their own
template <>
inline constexpr std::string_view kNames<GradientDtype> = "none|bf16|fp16";

enum class OptimizerState { Fp32, Bf16, Bits8 };  // how Adam and AdamW keep the averages of large weights
template <>
inline constexpr std::string_view kNames<OptimizerState> = "fp32|bf16|8bit";

enum class ResumedOptimizer { Same, Fitting, None };  // the checkpoint's optimizer states that a resumed run takes
template <>
inline constexpr std::string_view kNames<ResumedOptimizer> = "same|fitting|none";

enum class CheckpointOverlap { Wait, Skip };  // the action when the checkpoint before is still being written
template <>
inline constexpr std::string_view kNames<CheckpointOverlap> = "wait|skip";

enum class MuonScale { MatchRmsAdamW, Original };  // how the edges of a matrix enter its step
template <>
inline constexpr std::string_view kNames<MuonScale> = "match_rms_adamw|original";

enum class ShardStage { None, Optimizer, Gradients, Full };  // ZeRO 0 to 3
template <>
inline constexpr std::string_view kNames<ShardStage> = "none|optimizer|gradients|full";

enum class GatherDtype { Fp32, Bf16 };  // the type in which sharded weights are gathered
template <>
inline constexpr std::string_view kNames<GatherDtype> = "fp32|bf16";

// The part of the model that the backward pass computes again.
enum class CheckpointedPart { None, Mlp, Attention, Blocks, Pattern, Budget };
template <>
inline constexpr std::string_view kNames<CheckpointedPart> = "none|mlp|attention|blocks|pattern|budget";

// The steps through which the gradient of a loss over several steps of the model goes.
enum class MultistepGradient { All, Last };
template <>
inline constexpr std::string_view kNames<MultistepGradient> = "all|last";

enum class DeviceChoice { Auto, Cpu, Cuda };
template <>
inline constexpr std::string_view kNames<DeviceChoice> = "auto|cpu|cuda";

enum class FolderRule {
  Auto,
  Gpu,
  Mp
};  // <world size>GPU or <ranks of one model>MP; Auto is Mp when a model-parallel flag is given
template <>
inline constexpr std::string_view kNames<FolderRule> = "auto|gpu|mp";

enum class QkvLayout { Joint, Separate };  // one attn.qkv (SC23), or attn.q, attn.k and attn.v (DL4SCI25)
template <>
inline constexpr std::string_view kNames<QkvLayout> = "joint|separate";

enum class GridType { Equiangular, LegendreGauss };  // latitudes: in equal steps from pole to pole, or the nodes of Gauss
template <>
inline constexpr std::string_view kNames<GridType> = "equiangular|legendre-gauss";

enum class Loader { LowMem, InMem, DaliLowMem, Synthetic, PyTorch, Dali };  // the tutorials' kinds of loader
template <>
inline constexpr std::string_view kNames<Loader> = "lowmem|inmem|dali-lowmem|synthetic|pytorch|dali";

enum class Compat { Sc21, Sc22, Sc23, Dl4sci25 };  // the tutorial whose old rules hold
template <>
inline constexpr std::string_view kNames<Compat> = "sc21|sc22|sc23|dl4sci25";

// An enum that is the value of a key.
template <typename E>
concept Choice = std::is_enum_v<E> && !kNames<E>.empty();

template <Choice E>
constexpr std::string_view name_of(E value) {
  std::string_view names = kNames<E>;
  for (int i = 0; i < static_cast<int>(value); ++i) names.remove_prefix(names.find('|') + 1);
  return names.substr(0, names.find('|'));
}

// The value with this name; nullopt when none has it.
template <Choice E>
constexpr std::optional<E> choice_named(std::string_view name) {
  std::string_view names = kNames<E>;
  for (int i = 0;; ++i) {
    const size_t end = names.find('|');
    if (names.substr(0, end) == name) return static_cast<E>(i);
    if (end == std::string_view::npos) return std::nullopt;
    names.remove_prefix(end + 1);
  }
}

}  // namespace welkin::config
