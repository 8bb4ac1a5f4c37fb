// SPDX-License-Identifier: Apache-2.0
// The executable `welkin`. It is linked to neither torch nor libwelkin.so: it finds the torch wheel, sets the variables that
// torch's libraries read while loading, loads both and calls welkin_main (apps/welkin.cpp).
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string_view>

#include "core/error.h"
#include "launch/torch_loader.h"
#include "launch/torch_location.h"

namespace {

namespace fs = std::filesystem;

std::optional<fs::path> environment_path(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

// The value of --torch among the options before the verb.
std::optional<fs::path> torch_flag(int argc, char** argv) {
  for (int i = 1; i + 1 < argc && argv[i][0] == '-'; ++i) {
    const std::string_view option = argv[i];
    if (option == "--torch") return argv[i + 1];
    if (option == "--plugin") ++i;
  }
  return std::nullopt;
}

int run(int argc, char** argv) {
  const fs::path folder = fs::canonical("/proc/self/exe").parent_path();
  const welkin::launch::TorchSearch search{.flag = torch_flag(argc, argv),
                                           .environment = environment_path("WELKIN_TORCH"),
                                           .virtual_env = environment_path("VIRTUAL_ENV"),
                                           .nearby_venv = folder.parent_path().parent_path() / ".venv"};
  const fs::path package = welkin::launch::find_torch(search);
  welkin::launch::set_loading_environment();
  const bool with_cuda = welkin::launch::has_cuda_device();
  welkin::launch::load_torch(package, with_cuda);
  return welkin::launch::load_welkin(folder, with_cuda)(argc, argv);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const welkin::Error& error) {
    std::cerr << "welkin: " << error.what() << "\n";
    return static_cast<int>(error.exit_code());
  } catch (const std::exception& error) {
    std::cerr << "welkin: " << error.what() << "\n";
    return static_cast<int>(welkin::ExitCode::Other);
  }
}
