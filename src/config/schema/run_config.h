// SPDX-License-Identifier: Apache-2.0
// The resolved configuration of a run: plain structs, one per component. Field names are the tutorials' YAML keys; keys of our
// own are marked (ours). A field's default is what holds when neither file, preset nor flag gives a value. Built by
// config/resolve/resolve.h, const afterwards. After resolve(): names that may be empty below are filled in (model, loss, betas,
// schedule, data_loader_config), exactly one of num_epochs and num_iters is positive, the synonyms (lr and start_lr,
// tensor_parallel and row_parallel_size, amp_mode and enable_amp) agree, and paths are rebound.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/schema/checkpointing.h"
#include "config/schema/choices.h"
#include "config/schema/health_config.h"
#include "config/schema/spatial.h"

namespace welkin::config {

struct WeightInit {
  std::string conv_init = "normal";       // known key without effect, as in the tutorials: the distribution is always normal
  double conv_scale = 0.02;               // standard deviation of every convolution's weight
  std::optional<double> conv_bias = 0.0;  // constant of every bias; null keeps PyTorch's default distribution

  bool operator==(const WeightInit&) const = default;
};

struct ModelConfig {
  std::string
      model;  // (ours) registered name: "vit", "afno", ... (builtin_models.h) or a plug-in's; inferred from the keys when absent
  // ViT
  int64_t embed_dim = 384;                     // width d of a token
  int64_t depth = 12;                          // number of blocks
  int64_t patch_size = 8;                      // edge of a square patch, grid points
  int64_t num_heads = 8;                       // attention heads; divides embed_dim
  double mlp_ratio = 4.0;                      // (ours) hidden width of the MLP over embed_dim
  double dropout = 0.0;                        // rate in [0, 1) of dropout, attention dropout and, rising over depth, drop-path
  QkvLayout qkv = QkvLayout::Separate;         // (ours) joint (SC23: one attn.qkv) or separate (DL4SCI25: attn.q, attn.k, attn.v)
  std::vector<int64_t> img_size = {360, 720};  // latitude, longitude points of the cropped field; divisible by patch_size
  int64_t n_in_channels = 20;                  // channels per time step in the file that enter the model
  int64_t n_out_channels = 20;                 // channels predicted
  bool residual = false;                       // (ours) predict the change from the newest input step instead of the state itself
  std::vector<std::string> residual_except;    // (ours) predicted channels that are predicted as states: patterns with * and ?
  // (ours) AFNO, SFNO, Swin
  int64_t num_blocks = 8;                            // AFNO: blocks of channels that the filter mixes; divides embed_dim
  double sparsity_threshold = 0.01;                  // AFNO: coefficients shrink by it, towards zero
  int64_t scale_factor = 3;                          // SFNO: the grid of the inner blocks is coarser by it
  GridType model_grid_type = GridType::Equiangular;  // SFNO: latitudes of the field
  std::vector<int64_t> window_size = {6, 12};        // Swin: patches of an attention window along latitude and longitude
  // U-Nets
  bool full_scale = true;      // six scales, else five
  int64_t N_in_channels = 4;   // (ours) channels of the input box
  int64_t N_out_channels = 5;  // channels of the output box
  int64_t width = 64;          // (ours) channels after the first convolution
  int64_t scales = 0;          // (ours) number of scales (2..6); 0 = six or five by full_scale, four for the 2-D U-Net
  WeightInit weight_init;

  bool operator==(const ModelConfig&) const = default;
};

struct DataConfig {
  // both
  std::string dataset;  // (ours) registered name: "era5" (yearly files), "nbody" (boxes), "online" (pairs that a program hands
                        // over) or a plug-in's; by the model when empty
  std::optional<Loader>
      data_loader_config;        // loader kind, a hint: lowmem inmem dali-lowmem synthetic (U-Net), pytorch dali synthetic (ViT)
  int64_t num_data_workers = 0;  // reading threads; 0 reads in the step's own thread
  int64_t prefetch_depth = 2;    // (ours) batches held ready ahead of the step
  bool persistent_workers = true;            // (ours) reading threads live on at an epoch's end and read ahead across it
  bool pin_memory = true;                    // (ours) page-locked host buffers (GPU)
  bool non_blocking = true;                  // (ours) copies to the GPU overlap the step
  double read_stall_seconds = 30;            // (ours) a read that takes longer is named in the log; 0 = never
  BadSample bad_samples = BadSample::Error;  // (ours) the effect of a sample that cannot be read
  NanPolicy nan_policy = NanPolicy::Off;     // (ours) the effect of NaN or Inf in a sample
  int64_t online_pairs = 256;                // (ours) pairs in memory of those that a program hands over
  int64_t online_uses = 1;                   // (ours) steps that use each of them
  bool allow_changed_data = false;           // (ours) resume though the files of the training data have changed
  bool allow_unnormalized = false;           // (ours) train on input that lies far from the mean of global_means_path
  Residence resident = Residence::None;      // (ours) place of all values for the whole run: device is the GPU's memory
  std::optional<std::string> stage;          // (ours) folder on this node: training files are copied to it and read from there
  std::vector<double> clip_in, clip_out;     // (ours) {lowest, highest} value, before log and normalisation
  std::vector<int64_t> log_channels_in, log_channels_out;  // (ours) channels that become log(1 + x), before normalisation
  std::string data_root = "/data";  // (ours) stands for the prefix /data of the paths below; resolve() has rebound them
  // N-body boxes
  std::vector<int64_t> box_size = {1024, 512};  // edge of the training and the validation box, cells
  int64_t data_size = 64;                       // edge of a crop, cells
  int64_t Nsamples = 65536;                     // training crops per epoch
  int64_t Nsamples_val = 8192;                  // validation crops
  std::string train_path, val_path;             // HDF5 with datasets Nbody (C, L, L, L) and Hydro (C', L, L, L)
  std::string train_path_npy_data, train_path_npy_label, val_path_npy_data, val_path_npy_label;  // npy, (L, L, L, C)
  std::optional<std::string> use_cache;  // folder that replaces the folder part of train_path and val_path; resolve() has done so
  Augmentation augment = Augmentation::Rotations;  // (ours) none, flips (4), rotations (24 proper), octahedral (48 with
                                                   // reflections), tutorial (its 24 with 8 reflections)
  std::vector<int64_t>
      vector_channels_in;  // (ours) flat triples of input channels that are vector components along axes 0, 1, 2 of the box
  std::vector<int64_t> vector_channels_out;  // (ours) the same for the output
  // ERA5 years
  int64_t dt = 1;       // lead of the target, steps of the file
  int64_t history = 1;  // (ours) input steps, newest last; more channels enter the model
  std::vector<std::string>
      forcing;  // (ours) extra input channels computed from time and place: solar, solar_daily, calendar, coordinates
  std::string time_units, time_calendar;         // (ours) CF units and calendar of times, for files that do not give them
  std::string train_data_path, valid_data_path;  // folders of yearly HDF5 files, dataset fields (time, channel, lat, lon)
  std::string inf_data_path, time_means_path;
  std::string global_means_path, global_stds_path;            // npy, (1, C, 1, 1)
  std::optional<int64_t> limit_nsamples, limit_nsamples_val;  // at most so many samples per epoch
  std::vector<std::string> channel_names;                     // (ours) for logs and pictures; taken from the file where absent
  std::vector<std::string> in_channels;    // (ours) names of the input channels, in this order; empty: the first n_in_channels
  std::vector<std::string> out_channels;   // (ours) the same for the target; as in_channels where only that is given
  std::vector<std::string> roles;          // (ours) channel=role, over the files' roles: prognostic forcing diagnostic static
  std::vector<std::string> normalization;  // (ours) channel=standard, minmax, log:EPS or none, instead of standard
  std::vector<std::string> hole_fill;      // (ours) channel=value in its unit, for input points without a value; else the mean
  std::vector<int64_t> crop;               // (ours) first row and column of the crop img_size; empty: {0, 0}
  std::vector<double> crop_lat, crop_lon;  // (ours) {south, north} and {west, east} of the crop instead, degrees
  std::vector<std::string> datasets;       // (ours) FOLDER=weight: folders with train, valid and test, instead of the paths
  std::vector<std::string> variables;      // (ours) of an archive with an array for each variable; empty: training files
  std::vector<double> levels;              // (ours) of its variables that have levels; empty: all
  std::vector<std::string> train_times, valid_times, test_times;  // (ours) first and last date in that archive; empty: all

  bool operator==(const DataConfig&) const = default;
};

struct LossConfig {
  std::string loss;         // (ours) "relative_l2", "l1_rho", "mse", "mae" or a plug-in's; by the model when empty
  double lambda_rho = 0.0;  // weight of the density term of l1_rho
  LevelWeighting level_weighting = LevelWeighting::Equal;  // (ours) weights of channels by their variable and pressure level
  std::vector<std::string> channel_weights;                // (ours) channel=weight, over level_weighting; patterns with * and ?
  bool latitude_weights = false;                           // (ours) points are weighted by the cosine of their latitude
  double huber_delta = 1.0;                                // (ours) loss huber: errors above it count linearly
  double spectral_weight = 0.0;           // (ours) weight of a term for the amplitude of each wavenumber along longitude
  std::vector<std::string> conservation;  // (ours) channel=weight of a term for the error of the global mean; patterns
  StepCounts multistep;                   // (ours) steps of the model for which a sample is trained; several: a curriculum
  std::vector<int64_t> multistep_epochs;  // (ours) number of epochs for which each of them holds; the last one until the end
  std::vector<int64_t> multistep_iters;   // (ours) the same in optimizer steps
  bool multistep_recompute = false;       // (ours) each step of the model keeps only its input, and runs again
  MultistepGradient multistep_gradient = MultistepGradient::All;  // (ours) last: push-forward, the others have no gradient
  int64_t ensemble_members = 1;  // (ours) predictions of each sample in a step; the loss is then their fair CRPS
  int64_t replay_buffer = 0;     // (ours) predicted states kept as later inputs, for each sample of the batch; 0: none
  int64_t replay_steps = 10;     // (ours) most steps of the model that follow one of them
  double input_noise = 0.0;      // (ours) noise on the predicted channels of the input, in standard deviations of each

  bool operator==(const LossConfig&) const = default;
};

struct OptimizerConfig {
  std::string optimizer = "Adam";  // Adam, AdamW, SGD, Lion, LAMB, LARS, Adafactor, Muon (all but the first ours) or a plug-in's
  double lr = 5e-4;           // rate before ScheduleConfig::scaling (ViT files' name; always equal to ScheduleConfig::start_lr)
  std::vector<double> betas;  // (ours) {0.9, 0.95} for the ViT, {0.9, 0.999} for the U-Net, {0.9, 0.99} for Lion when empty
  double eps = 1e-8;          // (ours) when not given: LAMB 1e-6, Adafactor 2^-23
  double weight_decay = 0.0;  // (ours) Adam, SGD, LARS: added to the gradient; LAMB: to the update; else decoupled
  double momentum = 0.9;      // (ours) SGD, LARS, Muon (0.95 when not given)
  double clip_norm = 0.0;     // (ours) largest global 2-norm of the gradient, after unscaling; 0 = no clipping
  std::vector<std::string> freeze;  // (ours) parameters that are not trained: patterns of names with * and ?
  OptimizerState optimizer_state = OptimizerState::Fp32;  // (ours) format of the averages of Adam and AdamW
  double trust_coefficient = 0.001;                       // (ours) LARS: rate of a layer over the quotient of its norms
  double lamb_min_ratio = 0.0;                            // (ours) smallest trust ratio, which scales a layer's rate
  double lamb_max_ratio = 0.0;                            // (ours) largest trust ratio; 0 = no bound
  bool adafactor_factored = true;                         // (ours) averages of rows and columns instead of one for each weight
  double adafactor_decay = -0.8;                          // (ours) the average of squares forgets with step^adafactor_decay
  double adafactor_clip = 1.0;                            // (ours) largest root mean square of an update
  double adafactor_min_scale = 1e-3;                      // (ours) smallest root mean square of a parameter that scales its step
  MuonScale muon_scale = MuonScale::MatchRmsAdamW;        // (ours) scale of a matrix's step by its edges
  int64_t muon_steps = 5;                                 // (ours) of the Newton-Schulz iteration
  bool muon_nesterov = true;                              // (ours)
  std::vector<std::string> muon_except = {"*embed*", "head.*"};  // (ours) weights that Muon leaves to AdamW: patterns of names
  double ema_decay = 0.0;                                        // (ours) of the moving average of weights; 0 = none is kept
  bool ema_warmup = true;                                        // (ours) the decay is at most (1 + updates) / (10 + updates)
  bool ema_validate = false;                                     // (ours) validation uses the average

  bool operator==(const OptimizerConfig&) const = default;
};

struct ScheduleConfig {
  std::string
      schedule;  // (ours) constant, linear, cosine, table, unet_tutorial, vit_tutorial or a plug-in's; by the file when empty
  RateScaling scaling = RateScaling::None;  // none, sqrt, linear in global_batch_size / base_batch_size (U-Net)
  double start_lr = 5e-4;                   // rate before scaling (U-Net files' name of lr; default 2e-4 for the U-Net)
  double end_lr = 0.0;                      // rate at the last step
  int64_t warmup_steps = 0;      // linear ramp, optimizer steps (ViT files: `warmup`; U-Net: only when the batch is stretched)
  double warmup_start_lr = 0.0;  // (ours) rate before `scaling` that the ramp begins above
  WarmupForm warmup_form = WarmupForm::Linear;  // (ours) shape of the ramp; log as DeepSpeed's WarmupLR
  std::vector<double> table;                    // (ours) step0, rate0, step1, rate1, ...: linear in between

  bool operator==(const ScheduleConfig&) const = default;
};

struct PrecisionConfig {
  AmpMode amp_mode = AmpMode::None;
  bool enable_amp = false;           // SC21's key: true stands for fp16 where amp_mode is not given; afterwards amp_mode != None
  double loss_scale = 65536.0;       // (ours) fp16: initial scale
  int64_t loss_scale_window = 2000;  // (ours) clean steps before the scale grows
  double loss_scale_factor = 2.0;    // (ours) growth, and the inverse of the back-off
  double loss_scale_min = 1.0;       // (ours) smallest scale

  bool operator==(const PrecisionConfig&) const = default;
};

// (ours) How samples are chosen and steps counted: the corrected rules, or a tutorial's old ones, each on its own. --compat sets
// them together, with schedule and augment; docs/reference/defects.md says what each old one does.
struct RuleConfig {
  CropRule crop_rule = CropRule::Inclusive;  // inclusive: starts 0 ... L - s; exclusive: the last start is never drawn
  PairRule pair_rule = PairRule::EachFile;   // each_file: every pair of every year once; first_file: the first year's length
  ValidationRule validation_rule =
      ValidationRule::EverySample;          // every_sample; drawn: new random crops each time; full_batches: the rest is dropped
  ShardRule shard_rule = ShardRule::Exact;  // exact; padded: samples repeat to a multiple of the ranks; truncated: they are cut
  LengthRule length_rule = LengthRule::Exact;  // exact: num_iters steps; whole_epochs: num_iters // steps of an epoch epochs
  RateRule rate_rule = RateRule::Updates;      // the schedule counts updates, or iterations (skipped updates too)
  FirstBatchRule first_batch_rule =
      FirstBatchRule::Kept;  // kept; consumed: the initial loss takes the first batch out of the first epoch

  bool operator==(const RuleConfig&) const = default;
};

// (ours) Process-wide settings of torch and of the libraries below it.
struct BackendConfig {
  Tf32 tf32 = Tf32::On;              // TF32 in cuBLAS and cuDNN for fp32 matmuls; NVIDIA_TF32_OVERRIDE=0 turns it off
  bool cudnn_enabled = true;         // cuDNN, or torch's own kernels
  bool cudnn_benchmark = true;       // cuDNN measures its algorithms for each shape; off where `deterministic`
  bool cudnn_deterministic = false;  // only algorithms of cuDNN that repeat bit for bit; on where `deterministic`
  double memory_limit_gib = 0.0;     // cap of the tensors' memory: of the process on a CPU, of the process on its GPU; 0 = none
  std::vector<std::string> offload;  // (ours) data kept outside of the device's memory: optimizer, activations, parameters
  std::string offload_path;  // (ours) folder on a local disk, for a file of each rank; empty: the host's memory (of a GPU)
  double offload_buffer_mib = 64.0;  // (ours) size of one of the three host buffers between file and device
  bool cuda_graph = false;           // steps are recorded once and replayed as CUDA graphs (SC21 to SC23: train_graph.py)
  bool channels_last = false;        // images and boxes lie channels-last on a GPU, and the weights of convolutions with them
  AttentionForm attention = AttentionForm::Auto;  // torch's attention on a GPU; auto = measured
  Gemm gemm = Gemm::Auto;                         // library for float32 GEMM on a CPU; auto = by processor
  MatmulPrecision float32_matmul_precision =
      MatmulPrecision::Highest;                           // high, medium: matmuls may take operands of 16 or 8 bits (on a CPU)
  InstructionSet instruction_set = InstructionSet::Auto;  // of our CPU kernels; auto = the best there is

  bool operator==(const BackendConfig&) const = default;
};

// The tutorials' speed switches. Hints: docs/reference/switches.md says what each means on this machine.
struct SwitchConfig {
  bool enable_jit = false, enable_apex = false, enable_fused = false, enable_benchy = false, enable_manual_profiling = false;

  bool operator==(const SwitchConfig&) const = default;
};

struct ParallelConfig {
  int64_t tensor_parallel = 1;              // tp
  int64_t context_parallel = 1;             // cp
  SpatialRanks spatial;                     // (ours) d, h, w: ranks that share the points of a sample, block by block
  int64_t row_parallel_size = 1;            // SC23's name for tp
  int64_t col_parallel_size = 1;            // must be 1
  std::string parallel_order = "tp-cp-dp";  // rank order, left = fastest; pp is the slowest where it is not named
  int64_t pipeline_parallel = 1;            // (ours) pp: number of stages; each rank has some of the model's blocks
  PipelineSchedule pipeline_schedule = PipelineSchedule::OneForwardOneBackward;  // (ours) order of their passes
  int64_t pipeline_chunks = 0;                        // (ours) runs of blocks per rank; 0 = two for interleaved, else one
  std::string pipeline_split;                         // (ours) blocks of each stage: 0-3,4-7; empty = by cost
  bool sequence_parallel = false;                     // (ours) norms, dropout and residuals on tokens sharded over tp too
  ContextMode context_mode = ContextMode::AllGather;  // (ours) attention over tokens that are sharded over cp
  ContextIo context_io = ContextIo::Sharded;          // (ours) what context-parallel ranks read, embed and score
  int64_t replica_check_interval =
      1000;  // (ours) steps between comparisons of replicas; 0 = only at the start and before checkpoints
  ShardStage shard = ShardStage::None;  // (ours) the part of the training state that data-parallel ranks shard
  std::string shard_group = "all";      // (ours) all, or the number of data-parallel ranks that share one training state
  bool reshard_after_forward = true;    // (ours) shard: full frees a block's weights between forward and backward pass
  int64_t shard_prefetch = 1;           // (ours) blocks whose weights are gathered ahead
  GatherDtype shard_gather_dtype = GatherDtype::Fp32;  // (ours) type in which weights of matmuls and convolutions are gathered
  bool noddp = false;
  bool disable_broadcast_buffers = false;
  int64_t bucket_cap_mb = 25;
  WireupInfo wireup_info = WireupInfo::Env;
  WireupStore wireup_store = WireupStore::Tcp;
  GradientDtype compress_gradients = GradientDtype::Same;  // (ours) the type in which gradients are sent between replicas
  bool static_graph = false;                               // (ours) every step uses the same parameters in the same order
  bool rank_invariant = false;                             // (ours) the same bits for 1, 2, 4 and 8 data-parallel ranks
  int64_t comm_timeout_s = 600;  // (ours) longest wait of a rank for others, at the start and in a collective

  // Ranks that hold one copy of the model, or share the points of a sample, together.
  int64_t model_size() const { return tensor_parallel * context_parallel * spatial.size() * pipeline_parallel; }
  int64_t chunks() const {
    if (pipeline_chunks > 0) return pipeline_chunks;
    return pipeline_schedule == PipelineSchedule::Interleaved ? 2 : 1;
  }

  bool operator==(const ParallelConfig&) const = default;
};

struct LoopConfig {
  int64_t global_batch_size = 0;                // samples per optimizer step, over all data-parallel ranks; required
  int64_t base_batch_size = 64;                 // batch at which start_lr holds
  std::optional<int64_t> local_batch_size;      // per rank; sets global_batch_size = dp size * this
  MicroBatchSize micro_batch_size;              // (ours) samples per forward; 0 = the whole local batch; auto = by memory
  Checkpointing activation_checkpointing;       // (ours) the part of the model that the backward pass computes again
  int64_t activation_checkpointing_blocks = 0;  // (ours) number of such blocks, from the first on; 0 = all
  int64_t num_epochs = 0;                       // U-Net; 0 = not given
  int64_t num_iters = 0;                        // ViT: optimizer steps; 0 = not given
  uint64_t seed = 0;                            // (ours) of weights, order, augmentation and dropout
  bool deterministic = false;                   // (ours) same bits run to run
  CheckpointInterval checkpoint_interval;       // (ours) steps; 0 = only at the end and on a signal; auto = by mtbf
  double mtbf = 0;                              // (ours) mean hours between failures of a node; 0 = not given
  int64_t keep_checkpoints = 2;                 // (ours) newest ones that stay on disk; the best one stays too
  int64_t keep_every = 0;                       // (ours) checkpoints of steps that are multiples of it stay too; 0 = none
  bool checkpoint_async = true;  // (ours) a step waits only for a copy of the state; files are written beside training
  CheckpointOverlap checkpoint_overlap =
      CheckpointOverlap::Wait;               // (ours) the action when the checkpoint before is still being written
  std::vector<std::string> checkpoint_dirs;  // (ours) more places: NAME:PATH[:INTERVAL[:KEEP]][:neighbour]
  int64_t verify_interval = 0;               // (ours) seconds between rereadings of a kept checkpoint; 0 = none
  std::string time_limit;                    // (ours) of the run, as sbatch --time; empty = that of the batch system
  int64_t time_limit_margin = 60;            // (ours) seconds kept free before the time limit; the run is saved then
  bool requeue = false;                      // (ours) the job then queues itself again
  std::string best_metric = "val_loss";      // (ours) the metric whose smallest value the best checkpoint has
  std::vector<std::string> early_stopping;   // (ours) metric, patience in validations, optionally min_delta (early_stopping.h)
  bool resume = false;                       // (ours) continue from the newest good checkpoint of the run folder
  ResumedOptimizer resume_optimizer =
      ResumedOptimizer::Same;  // (ours) states taken from the checkpoint: all, which must be the run's, those that fit, or none
  NonFiniteAction on_nonfinite =
      NonFiniteAction::Stop;                 // (ours) the effect of NaN or Inf in loss or gradient (fp16 overflow is not one)
  std::optional<Compat> compat;              // (ours) the tutorial whose old schedule, augmentation and rules hold (RuleConfig)
  DeviceChoice device = DeviceChoice::Auto;  // (ours) auto = a GPU where there is one
  int64_t threads = 0;                       // (ours) intra-op threads; 0 = cores of this process

  bool operator==(const LoopConfig&) const = default;
};

struct OutputConfig {
  std::string expdir = "/logs";    // root of the run folders
  std::string log_root = "/logs";  // (ours) stands for the prefix /logs of expdir
  std::string run_num = "00";      // last folder of a run
  FolderRule folder_rule =
      FolderRule::Auto;  // (ours) gpu: <world size>GPU, mp: <ranks of one model>MP; auto = mp when a model-parallel flag is given
  int64_t log_every_n_steps = 0;   // (ours) steps between log lines of loss, rate and remaining time; 0 = none
  bool csv = false;                // (ours) metrics.csv in the run folder: the values for TensorBoard, as a table
  std::vector<std::string> track;  // (ours) trackers for which the run is written when it ends: mlflow, wandb

  bool operator==(const OutputConfig&) const = default;
};

struct RunConfig {
  // The tutorial whose rules apply; None for a file of our own (key `model`).
  Tutorial tutorial = Tutorial::None;
  std::string yaml_config;      // absolute path of the file; empty when none
  std::string config = "base";  // preset
  ModelConfig model;
  DataConfig data;
  LossConfig loss;
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  PrecisionConfig precision;
  RuleConfig rules;
  BackendConfig backend;
  SwitchConfig switches;
  ParallelConfig parallel;
  HealthConfig health;
  LoopConfig loop;
  OutputConfig output;
  std::map<std::string, std::string>
      options;  // (ours) free keys for plug-ins, as text: `options: {alpha: 3}`, `--set options.alpha=3`

  bool operator==(const RunConfig&) const = default;
};

}  // namespace welkin::config
