// SPDX-License-Identifier: Apache-2.0
#include "launch/world_size.h"

#include <charconv>
#include <string_view>

#include "core/error.h"
#include "core/text.h"

namespace welkin::launch {

AnnouncedWorld announced_world(const std::function<const char*(const char*)>& read) {
  // sbatch sets SLURM_NTASKS for the whole script too: only a step of srun has a SLURM_STEP_ID besides.
  const bool in_step = read("SLURM_STEP_ID") != nullptr;
  for (const char* name : {"WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    if (std::string_view(name) == "SLURM_NTASKS" && !in_step) continue;
    const char* value = read(name);
    if (value == nullptr) continue;
    const std::string_view text = value;
    AnnouncedWorld world{.size = 0, .variable = name};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), world.size);
    if (error != std::errc{} || end != text.data() + text.size() || world.size < 1) {
      throw ConfigError("launch", cat("no number of processes: ", name, "=", text),
                        cat("Unset ", name, ", or set it to the number of processes"));
    }
    return world;
  }
  return {};
}

}  // namespace welkin::launch
