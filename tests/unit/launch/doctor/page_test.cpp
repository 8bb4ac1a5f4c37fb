// SPDX-License-Identifier: Apache-2.0
// The page as text and JSON, and the job, the paths and the arguments of the doctor.
#include "launch/doctor/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "core/error.h"
#include "launch/doctor/doctor_command.h"
#include "launch/doctor/job_findings.h"
#include "launch/doctor/path_findings.h"

namespace welkin::launch {
namespace {

using testing::HasSubstr;

Findings three() {
  return {{"memory", Verdict::Good, "4 GiB", ""},
          {"huge pages", Verdict::Doubtful, "never", "echo madvise"},
          {"driver", Verdict::Bad, "too \"old\"", "Update it"}};
}

ReadVariable table(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const char* name) {
    const auto found = values.find(name);
    return found == values.end() ? nullptr : found->second.c_str();
  };
}

Finding of_job(const std::map<std::string, std::string>& values, const std::string& topic) {
  for (const Finding& finding : job_findings(table(values))) {
    if (finding.topic == topic) return finding;
  }
  return {};
}

TEST(DoctorPage, HasALineForEachFindingAndItsRemedyBelow) {
  EXPECT_EQ(page_text(three(), false),
            "green   memory          4 GiB\n"
            "amber   huge pages      never\n"
            "                        -> echo madvise\n"
            "red     driver          too \"old\"\n"
            "                        -> Update it\n"
            "1 green, 1 amber, 1 red\n");
  EXPECT_THAT(page_text(three(), true), HasSubstr("\033[31mred\033[0m     driver"));
}

TEST(DoctorPage, ComesBackFromJson) {
  const Findings back = findings_of(page_json(three()));
  ASSERT_EQ(back.size(), 3U);
  EXPECT_EQ(back[2].found, "too \"old\"");
  EXPECT_EQ(back[2].verdict, Verdict::Bad);
  EXPECT_EQ(back[1].remedy, "echo madvise");
  EXPECT_THAT(page_json(three()), HasSubstr("\"verdict\": \"red\""));
}

TEST(DoctorPage, OfAStrangerIsNone) {
  for (const char* text : {"", "[]", "{", R"({"findings": 3})", R"({"findings": [{"topic": 1}]})",
                           R"({"findings": [{"topic": "a", "verdict": "blue", "found": "", "remedy": ""}]})"}) {
    EXPECT_TRUE(findings_of(text).empty()) << text;
  }
}

TEST(JobFindings, KnowALauncherAndWhatContradictsItself) {
  EXPECT_EQ(of_job({}, "launcher").found, "none: a process of its own");
  const Finding half = of_job({{"RANK", "1"}}, "launcher");
  EXPECT_EQ(half.verdict, Verdict::Bad);
  EXPECT_THAT(half.found, HasSubstr("WORLD_SIZE"));
}

TEST(JobFindings, FindMoreThreadsThanCores) {
  EXPECT_EQ(of_job({{"OMP_NUM_THREADS", "100000"}}, "threads").verdict, Verdict::Bad);
  EXPECT_EQ(of_job({{"OMP_NUM_THREADS", "1"}}, "threads").verdict, Verdict::Good);
  EXPECT_EQ(of_job({{"OMP_NUM_THREADS", "1,2"}}, "threads").verdict, Verdict::Good);
  for (const char* text : {"abc", "0", "-3", "2x"})
    EXPECT_EQ(of_job({{"OMP_NUM_THREADS", text}}, "threads").verdict, Verdict::Bad);
}

TEST(JobFindings, FindASecretThatIsShort) { EXPECT_EQ(of_job({{"WELKIN_JOB_SECRET", "abc"}}, "secret").verdict, Verdict::Bad); }

TEST(PathFindings, MeasureAFolderAndLeaveNothing) {
  std::string name = testing::TempDir() + "/doctor_XXXXXX";
  const std::filesystem::path folder = mkdtemp(name.data());
  const Findings findings = path_findings(folder, 1 << 20);
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_THAT(findings[0].found, HasSubstr("writes "));
  EXPECT_THAT(findings[1].found, HasSubstr("small files a second"));
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove_all(folder);
  const Findings absent = path_findings(folder, 1 << 20);
  ASSERT_EQ(absent.size(), 1U);
  EXPECT_EQ(absent[0].verdict, Verdict::Bad);
}

TEST(DoctorArguments, AreWordsAndPaths) {
  const DoctorArguments arguments = parse_doctor({"-n", "4", "/data", "--json", "-", "--megabytes", "8", "/logs"});
  EXPECT_EQ(arguments.num_local, 4);
  EXPECT_EQ(arguments.json, "-");
  EXPECT_EQ(arguments.paths, (std::vector<std::filesystem::path>{"/data", "/logs"}));
  EXPECT_THROW(parse_doctor({"-n"}), ConfigError);
  EXPECT_THROW(parse_doctor({"--megabytes", "0"}), ConfigError);
  EXPECT_THROW(parse_doctor({"--no_such"}), ConfigError);
  EXPECT_THAT(doctor_help(), HasSubstr("usage: welkin doctor"));
}

}  // namespace
}  // namespace welkin::launch
