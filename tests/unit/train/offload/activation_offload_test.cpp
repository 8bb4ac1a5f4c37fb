// SPDX-License-Identifier: Apache-2.0
// Models whose activations are elsewhere between the two passes: the same bits, and the memory of about two parts.
#include "train/offload/activation_offload.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <c10/util/accumulate.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>

#include "core/error.h"
#include "model/registry.h"
#include "scratch_folder.h"
#include "train/device/memory_limit.h"
#include "train/offload/offload.h"
#include "train/recompute/activation_checkpointing.h"

namespace welkin::train {
namespace {

constexpr int64_t kAllowed = int64_t{1} << 40;

struct ActivationCase {
  std::string name, model;
  config::CheckpointedPart checkpointing = config::CheckpointedPart::None;
  bool in_file = true;
};

void PrintTo(const ActivationCase& c, std::ostream* out) { *out << c.name; }

config::RunConfig activation_config(const ActivationCase& c) {
  config::RunConfig config;
  config.model.model = c.model;
  config.model.embed_dim = 96;
  config.model.depth = 4;
  config.model.num_heads = 4;
  config.model.patch_size = 4;
  config.model.dropout = 0.1;
  config.model.width = 8;
  config.model.scales = 2;
  config.loop.activation_checkpointing = c.checkpointing;
  return config;
}

struct PassResult {
  at::Tensor output;
  std::map<std::string, at::Tensor> gradients;
  int64_t kept = 0;  // bytes between the passes
  int64_t stored = 0;
};

// Two forward and backward passes, of which the second finds the first one's room free. `folder` empty: nothing is offloaded.
PassResult pass_of(const ActivationCase& c, const std::string& folder) {
  model::Registry registry;
  model::add_builtin_models(registry);
  config::RunConfig config = activation_config(c);
  config.backend.offload_buffer_mib = 0.1;
  const bool is_vit = c.model == "vit";
  const model::ModelShape shape{
      .in_channels = 2, .out_channels = 2, .grid = is_vit ? std::vector<int64_t>{32, 32} : std::vector<int64_t>{16, 16, 16}};
  if (is_vit) config.model.img_size = {32, 32};
  const model::ModelPtr model = registry.at(c.model).build(config.model, shape);
  model->initialise(7);
  model->train();
  parallel::ParamTable table = parallel::ParamTable::of(*model);
  checkpoint_activations(*model, table, config);
  std::unique_ptr<ActivationOffload> offload;
  if (!folder.empty()) {
    config.backend.offload = {"activations"};
    if (c.in_file) config.backend.offload_path = folder;
    offload = Offload(config, at::kCPU).activations(*model, table);
  }
  std::vector<int64_t> sizes{2, 2};
  sizes.insert(sizes.end(), shape.grid.begin(), shape.grid.end());
  const at::Tensor input = at::arange(c10::multiply_integers(sizes), at::kFloat).mul(0.01F).sin().view(sizes);
  const at::Tensor step = at::full({}, int64_t{3}, at::kLong), sample = at::arange(2, at::kLong);
  PassResult result;
  for (int pass = 0; pass < 2; ++pass) {
    model->zero_grad();
    const int64_t before = cpu_memory_allocated();
    result.output = model->forward(input, {.seed = 5, .step = step, .sample = sample});
    result.kept = cpu_memory_allocated() - before;
    result.output.square().sum().backward();
  }
  for (const parallel::ParamRow& row : table.rows()) result.gradients[row.name] = row.local.grad().clone();
  result.output = result.output.detach();
  if (offload != nullptr) result.stored = offload->stored_bytes();
  return result;
}

class OffloadedActivations : public ::testing::TestWithParam<ActivationCase> {
 protected:
  void SetUp() override { limit_cpu_memory(kAllowed); }
  void TearDown() override { limit_cpu_memory(0); }
};

TEST_P(OffloadedActivations, HaveTheBitsOfThoseThatStay) {
  const ScratchFolder root;
  const PassResult wanted = pass_of(GetParam(), ""), got = pass_of(GetParam(), root.path().string());
  EXPECT_TRUE(at::equal(got.output, wanted.output));
  for (const auto& [name, gradient] : wanted.gradients) EXPECT_TRUE(at::equal(got.gradients.at(name), gradient)) << name;
  EXPECT_GT(got.stored, 0);
  if (!GetParam().in_file) return;  // there it is tensors' memory again
  EXPECT_LT(static_cast<double>(got.kept), 0.6 * static_cast<double>(wanted.kept)) << wanted.kept;
  EXPECT_TRUE(std::filesystem::is_empty(root.path()));
}

using config::CheckpointedPart;
INSTANTIATE_TEST_SUITE_P(All, OffloadedActivations,
                         ::testing::Values(ActivationCase{"vit", "vit"}, ActivationCase{"unet", "unet3d"},
                                           ActivationCase{"vit_host", "vit", CheckpointedPart::None, false},
                                           ActivationCase{"vit_checkpointed_mlp", "vit", CheckpointedPart::Mlp}),
                         [](const auto& row) { return row.param.name; });

// A block that the disk gives back otherwise ends the backward pass.
TEST(ActivationOffload, NoticesABitThatChanged) {
  const ScratchFolder root;
  const auto store = file_activations(root.path(), at::kCPU, 1 << 16);
  const at::Tensor piece = at::arange(100'000, at::kFloat).view(at::kByte);
  const std::unique_ptr<StoredPieces> first = store->put({piece}), second = store->put({piece, piece.narrow(0, 0, 5)});
  const at::Tensor back = second->bytes();
  EXPECT_TRUE(at::equal(back.narrow(0, 0, 400'000), piece));
  EXPECT_TRUE(at::equal(back.narrow(0, 400'000, 5), piece.narrow(0, 0, 5)));
  std::string path;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (target.starts_with(root.path().string())) path = entry.path().string();
  }
  const int other = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  EXPECT_EQ(::pwrite(other, "\x77", 1, 70'001), 1);
  ::close(other);
  try {
    first->bytes();
    ADD_FAILURE() << "no error";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(),
                ::testing::HasSubstr("a block is damaged: file=activations in " + root.path().string() + ", block=1 of"));
  }
}

}  // namespace
}  // namespace welkin::train
