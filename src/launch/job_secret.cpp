// SPDX-License-Identifier: Apache-2.0
#include "launch/job_secret.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "core/error.h"
#include "core/file_descriptor.h"
#include "core/text.h"

namespace welkin::launch {
namespace {

constexpr size_t kShortest = 16;
constexpr size_t kLongest = 4096;
constexpr const char* kSecretRemedy = "In the job script: export WELKIN_JOB_SECRET=$(openssl rand -hex 32)";

std::string checked(std::string secret, const std::string& where) {
  if (secret.size() >= kShortest && secret.size() <= kLongest) return secret;
  throw ConfigError(
      "launch",
      cat("the job's secret has another length than ", kShortest, " to ", kLongest, " bytes: ", where, ", bytes=", secret.size()),
      kSecretRemedy);
}

std::string secret_of_file(const std::string& path) {
  const auto refuse = [&](const std::string& what) -> ConfigError {
    return {"launch", cat("the file of the job's secret ", what, ": WELKIN_JOB_SECRET_FILE=", path),
            "Give a file of one line that only its owner may read (chmod 600), the same for all processes"};
  };
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat facts {};
  if (!file || fstat(file.get(), &facts) != 0) throw refuse("cannot be opened");
  if (!S_ISREG(facts.st_mode)) throw refuse("is not a file");
  if ((facts.st_mode & 077) != 0) throw refuse("can be read by others");
  std::string text(kLongest + 2, '\0');
  const ssize_t got = read(file.get(), text.data(), text.size());
  if (got < 0) throw refuse("cannot be read");
  text.resize(static_cast<size_t>(got));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return checked(std::move(text), cat("WELKIN_JOB_SECRET_FILE=", path));
}

}  // namespace

std::string job_secret(const ReadVariable& read) {
  const char* secret = read("WELKIN_JOB_SECRET");
  const char* file = read("WELKIN_JOB_SECRET_FILE");
  if (secret != nullptr && file != nullptr) {
    throw ConfigError("launch", "the job's secret is given twice: WELKIN_JOB_SECRET and WELKIN_JOB_SECRET_FILE are set",
                      "Unset one");
  }
  if (secret != nullptr) return checked(secret, "WELKIN_JOB_SECRET is set");
  return file != nullptr ? secret_of_file(file) : std::string();
}

std::string random_token() {
  std::array<unsigned char, 32> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw CommError("launch", "the system gives no random numbers", kSecretRemedy);
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes) text += {kDigits[byte >> 4], kDigits[byte & 15]};
  return text;
}

}  // namespace welkin::launch
