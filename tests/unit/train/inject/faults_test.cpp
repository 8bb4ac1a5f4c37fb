// SPDX-License-Identifier: Apache-2.0
// The text of faults, and what each does to a run of one process that outlives it.
#include "train/inject/faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>

#include "core/error.h"
#include "core/file.h"
#include "scratch_folder.h"
#include "train/inject/damage.h"

namespace welkin::train {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string refusal_of(const std::string& text, int64_t world_size = 2) {
  try {
    parse_faults(text, world_size);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no ConfigError";
}

TEST(Faults, AreReadFromTextWithTheirDefaults) {
  const auto faults =
      parse_faults("kill:step=5,phase=backward,rank=1; write_error:error=ENOSPC,after=2 ;wrong_time:seconds=-3600,rank=all", 2);
  ASSERT_EQ(faults.size(), 3u);
  EXPECT_EQ(faults[0].kind, FaultKind::Kill);
  EXPECT_EQ(faults[0].step, 5);
  EXPECT_EQ(faults[0].phase, "backward");
  EXPECT_EQ(faults[0].rank, 1);
  EXPECT_EQ(faults[1].phase, "write");
  EXPECT_EQ(faults[1].error, ENOSPC);
  EXPECT_EQ(faults[1].after, 2);
  EXPECT_EQ(faults[1].rank, 0);
  EXPECT_EQ(faults[2].rank, std::nullopt);
  EXPECT_EQ(faults[2].seconds, -3600);
}

TEST(Faults, AreReadFromAFile) {
  const ScratchFolder folder;
  std::ofstream(folder / "faults") << "# two\nstop:step=3\n\nslow:seconds=0.5,steps=4  # all four\n";
  const auto faults = parse_faults((folder / "faults").string(), 1);
  ASSERT_EQ(faults.size(), 2u);
  EXPECT_EQ(faults[1].kind, FaultKind::Slow);
  EXPECT_EQ(faults[1].steps, 4);
  EXPECT_EQ(faults[1].seconds, 0.5);
}

TEST(Faults, SayWhatIsWrongWithThem) {
  EXPECT_EQ(
      refusal_of("kil:step=5"),
      "[inject] there is no such fault, and no such file: fault=kil:step=5. Take one of kill, stop, slow, exception, "
      "nan_gradient, "
      "wrong_gradient, spike, flip_weight, truncate_checkpoint, flip_checkpoint, write_error, drop_connection, wrong_time.");
  EXPECT_EQ(refusal_of("kill:steps=5"),
            "[inject] kill has no value steps: fault=kill:steps=5. It takes step, rank, phase, after.");
  EXPECT_EQ(refusal_of("kill:step=0"),
            "[inject] step is no number from 1 to 1e+15: fault=kill:step=0. Write for instance step=1.");
  EXPECT_THAT(refusal_of("kill:step=5x"), HasSubstr("step is no number from 1"));
  EXPECT_THAT(refusal_of("kill:rank=2"), HasSubstr("rank is no number from 0 to 1: fault=kill:rank=2"));
  EXPECT_THAT(refusal_of("kill:phase=lunch"),
              HasSubstr("there is no such phase: lunch: fault=kill:phase=lunch. Take one of step, fetch,"));
  EXPECT_THAT(refusal_of("write_error:phase=step"), HasSubstr("Take one of write, create, sync, rename"));
  EXPECT_EQ(refusal_of("write_error:error=EPERM"),
            "[inject] this error of a disk is not known: fault=write_error:error=EPERM. Take EIO, ENOSPC or EROFS.");
  EXPECT_EQ(refusal_of("kill:5"), "[inject] a value without a name: 5: fault=kill:5. Write for instance kill:step=5.");
  EXPECT_EQ(refusal_of("kill:step=5,step=6"),
            "[inject] step is there twice: fault=kill:step=5,step=6. Write each value once; faults are separated by ;.");
  EXPECT_EQ(refusal_of(" ; "), "[inject] it names no fault: inject= ; . Write for instance kill:step=5.");
}

TEST(Faults, TheNewestCheckpointIsDamaged) {
  const ScratchFolder folder;
  EXPECT_EQ(damage_newest_checkpoint(folder.path(), FileDamage::Truncate), std::nullopt);
  for (const char* name : {"step_9", "step_10", "step_11.damaged"}) {
    fs::create_directory(folder / name);
    std::ofstream(folder / name / "model.safetensors") << "0123456789";
  }
  EXPECT_EQ(damage_newest_checkpoint(folder.path(), FileDamage::FlipBit), folder / "step_10" / "model.safetensors");
  EXPECT_EQ(read_file(folder / "step_10" / "model.safetensors", 100), "0123446789");
  damage_newest_checkpoint(folder.path(), FileDamage::Truncate);
  EXPECT_EQ(read_file(folder / "step_10" / "model.safetensors", 100), "01234");
  EXPECT_EQ(read_file(folder / "step_9" / "model.safetensors", 100), "0123456789");
}

}  // namespace
}  // namespace welkin::train
