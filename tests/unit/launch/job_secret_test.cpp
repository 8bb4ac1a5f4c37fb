// SPDX-License-Identifier: Apache-2.0
#include "launch/job_secret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "core/error.h"

namespace welkin::launch {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string secret_with(const std::map<std::string, std::string>& table) {
  return job_secret([&](const char* name) {
    const auto found = table.find(name);
    return found != table.end() ? found->second.c_str() : nullptr;
  });
}

std::string refusal_with(const std::map<std::string, std::string>& table) {
  try {
    secret_with(table);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "taken";
}

std::string file_with(const std::string& text, mode_t mode) {
  const std::string path = testing::TempDir() + "job_secret";
  std::filesystem::remove(path);
  std::ofstream(path) << text;
  chmod(path.c_str(), mode);
  return path;
}

TEST(JobSecret, IsTheVariableOrTheFile) {
  EXPECT_EQ(secret_with({}), "");
  EXPECT_EQ(secret_with({{"WELKIN_JOB_SECRET", "0123456789abcdef"}}), "0123456789abcdef");
  EXPECT_EQ(secret_with({{"WELKIN_JOB_SECRET_FILE", file_with("0123456789abcdef\n", 0600)}}), "0123456789abcdef");
}

TEST(JobSecret, OneThatIsShortIsRefusedAndNotShown) {
  const std::string refusal = refusal_with({{"WELKIN_JOB_SECRET", "tooshort"}});
  EXPECT_THAT(refusal, HasSubstr("WELKIN_JOB_SECRET is set, bytes=8"));
  EXPECT_THAT(refusal, Not(HasSubstr("tooshort")));
  EXPECT_THAT(refusal_with({{"WELKIN_JOB_SECRET", ""}}), HasSubstr("bytes=0"));
  EXPECT_THAT(refusal_with({{"WELKIN_JOB_SECRET", std::string(5000, 'x')}}), HasSubstr("bytes=5000"));
}

TEST(JobSecret, AFileThatOthersCanReadIsRefused) {
  EXPECT_THAT(refusal_with({{"WELKIN_JOB_SECRET_FILE", file_with("0123456789abcdef", 0640)}}),
              HasSubstr("can be read by others"));
  EXPECT_THAT(refusal_with({{"WELKIN_JOB_SECRET_FILE", "/nowhere/at/all"}}), HasSubstr("cannot be opened"));
  EXPECT_THAT(refusal_with({{"WELKIN_JOB_SECRET_FILE", "/dev/zero"}}), HasSubstr("is not a file"));
  EXPECT_THAT(refusal_with({{"WELKIN_JOB_SECRET_FILE", file_with("x", 0600)}, {"WELKIN_JOB_SECRET", "0123456789abcdef"}}),
              HasSubstr("given twice"));
}

TEST(JobSecret, ANewOneIsNotAnOldOne) {
  EXPECT_EQ(random_token().size(), 64u);
  EXPECT_NE(random_token(), random_token());
}

}  // namespace
}  // namespace welkin::launch
