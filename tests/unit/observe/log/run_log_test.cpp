// SPDX-License-Identifier: Apache-2.0
#include "observe/log/run_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <thread>
#include <vector>

#include "captured_console.h"
#include "core/error.h"
#include "core/text.h"

namespace welkin::observe {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(RunLog, LinesLookLikePythons) {
  std::tm time{};
  time.tm_year = 125, time.tm_mon = 2, time.tm_mday = 4, time.tm_hour = 5, time.tm_min = 6, time.tm_sec = 7, time.tm_isdst = -1;
  const int64_t milliseconds = int64_t{std::mktime(&time)} * 1000 + 89;
  EXPECT_EQ(format_log_line(milliseconds, LogLevel::Info, "  Avg train loss=0.5"),
            "2025-03-04 05:06:07,089 - root - INFO -   Avg train loss=0.5");
  EXPECT_THAT(format_log_line(milliseconds, LogLevel::Warning, ""), HasSubstr(" - root - WARNING - "));
}

TEST(RunLog, TheFileGetsWhatFollowsItsOpening) {
  const TemporaryFolder folder;
  CapturedConsole captured(false);
  write_file_atomically(folder / "out.log", "earlier run\n");
  RunLog log(captured.console());
  log.info("before");
  log.open_file(folder / "out.log");
  log.info("after");
  log.debug("below the level");
  EXPECT_THAT(captured.text(), ContainsRegex("INFO - before\n.* - root - INFO - after\n$"));
  EXPECT_THAT(read_file(folder / "out.log", 1000),
              ContainsRegex("^earlier run\n[0-9-]* [0-9:]*,[0-9]* - root - INFO - after\n$"));
}

TEST(RunLog, ARankThatDoesNotLogWritesNothing) {
  const TemporaryFolder folder;
  CapturedConsole captured(false);
  RunLog log(captured.console(), {.enabled = false});
  log.open_file(folder / "out.log");
  log.error("no");
  EXPECT_EQ(captured.text(), "");
  EXPECT_FALSE(std::filesystem::exists(folder / "out.log"));
}

TEST(RunLog, AFileThatCannotBeOpenedIsAnError) {
  CapturedConsole captured(false);
  RunLog log(captured.console());
  EXPECT_THAT([&] { log.open_file("/nonexistent/out.log"); },
              ThrowsMessage<DataError>(HasSubstr("cannot create: path=/nonexistent/out.log")));
}

TEST(RunLog, AFullDiskIsSaidOnceAndEndsNothing) {
  CapturedConsole captured(false);
  RunLog log(captured.console());
  log.open_file("/dev/full");
  log.info("one");
  log.info("two");
  const std::string text = captured.text();
  EXPECT_THAT(text, HasSubstr("ERROR - [file] cannot write: path=/dev/full, reason=No space left on device"));
  EXPECT_EQ(text.find("No space"), text.rfind("No space"));
  EXPECT_THAT(text, HasSubstr("INFO - two"));
}

TEST(RunLog, LinesOfManyThreadsStayWhole) {
  const TemporaryFolder folder;
  CapturedConsole captured(false);
  RunLog log(captured.console());
  log.open_file(folder / "out.log");
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&log, t] {
        for (int i = 0; i < 200; ++i) log.info(cat("t", t, " ", std::string(100, static_cast<char>('a' + t)), " end"));
      });
    }
  }
  const std::string text = read_file(folder / "out.log", 1 << 24);
  EXPECT_EQ(text, captured.text());
  size_t whole = 0;
  for (size_t at = 0; (at = text.find(" end\n", at)) != std::string::npos; ++at) ++whole;
  EXPECT_EQ(whole, 800u);
  EXPECT_EQ(static_cast<size_t>(std::ranges::count(text, '\n')), 800u);
}

TEST(Console, AStatusLineStaysBelowTheLines) {
  CapturedConsole captured(true, 10);
  captured.console().status("0123456789abc");
  captured.console().line("a line");
  captured.console().clear_status();
  captured.console().line("last");
  EXPECT_EQ(captured.text(), "\r\x1b[K012345678\r\x1b[Ka line\n012345678\r\x1b[Klast\n");
}

TEST(Console, NoStatusWithoutATerminal) {
  CapturedConsole captured(false);
  captured.console().status("50%");
  EXPECT_EQ(captured.text(), "");
}

}  // namespace
}  // namespace welkin::observe
