// SPDX-License-Identifier: Apache-2.0
#include "launch/torch_location.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <vector>

#include "core/error.h"
#include "core/text.h"

namespace welkin::launch {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRemedy =
    "Install it with `python3 -m pip install torch==2.11.0`, or name its folder with --torch DIR or WELKIN_TORCH";

bool is_package(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / "lib" / "libtorch_cpu.so", ignored) && fs::is_regular_file(folder / "version.py", ignored);
}

// "2.11.0+cu130" from version.py's line `__version__ = '2.11.0+cu130'`; empty when there is none.
std::string read_version(const fs::path& package) {
  std::ifstream file(package / "version.py");
  for (std::string line; std::getline(file, line);) {
    const size_t open = line.find('\'');
    const size_t close = line.rfind('\'');
    if (line.starts_with("__version__") && close > open) return line.substr(open + 1, close - open - 1);
  }
  return {};
}

fs::path require_version(const fs::path& package) {
  const std::string version = read_version(package);
  const std::string wanted = kTorchVersion;
  if (version != wanted && !version.starts_with(wanted + "+")) {
    throw ConfigError(
        "launcher", cat("wrong version of torch: found=", version, ", wanted=", wanted, ", folder=", package.string()), kRemedy);
  }
  return package;
}

// Asks `python` for the folder of its torch. Empty when there is no such program or it has no torch.
std::optional<fs::path> ask_python(const std::string& python) {
  // The working folder is taken off the search path: a folder named torch there is not the package.
  const std::string command = python +
                              " -c 'import sys; sys.path = [p for p in sys.path if p]; import importlib.util as u; "
                              "s = u.find_spec(\"torch\"); print(s.origin if s and s.origin else \"\")' 2>/dev/null";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  if (!pipe) return std::nullopt;
  std::array<char, 4096> line{};
  if (std::fgets(line.data(), static_cast<int>(line.size()), pipe.get()) == nullptr) return std::nullopt;
  std::string origin = line.data();
  while (origin.ends_with('\n')) origin.pop_back();
  return torch_package_in(fs::path(origin).parent_path());
}

fs::path require_named(const fs::path& folder, const char* source) {
  const auto package = torch_package_in(folder);
  if (!package)
    throw ConfigError("launcher", cat("no torch in the folder named by ", source, ": folder=", folder.string()), kRemedy);
  return require_version(*package);
}

}  // namespace

std::optional<fs::path> environment_path(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::optional<fs::path> torch_package_in(const fs::path& folder) {
  if (folder.empty()) return std::nullopt;
  std::vector<fs::path> candidates{folder, folder.parent_path(), folder / "torch"};
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder / "lib", ignored)) {
    if (entry.path().filename().string().starts_with("python3")) candidates.push_back(entry.path() / "site-packages" / "torch");
  }
  for (const auto& candidate : candidates) {
    if (is_package(candidate)) return fs::absolute(candidate);
  }
  return std::nullopt;
}

fs::path find_torch(const TorchSearch& search) {
  if (search.flag) return require_named(*search.flag, "--torch");
  if (search.environment) return require_named(*search.environment, "WELKIN_TORCH");
  std::vector<std::string> searched;
  for (const auto& environment : {search.virtual_env, search.nearby_venv}) {
    if (!environment) continue;
    if (const auto package = torch_package_in(*environment)) return require_version(*package);
    searched.push_back(environment->string());
  }
  if (!search.python.empty()) {
    if (const auto package = ask_python(search.python)) return require_version(*package);
    searched.push_back(search.python);
  }
  throw ConfigError("launcher", cat("torch ", kTorchVersion, " was not found: searched=", join(searched, " ")), kRemedy);
}

}  // namespace welkin::launch
