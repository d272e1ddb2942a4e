// SPDX-License-Identifier: Apache-2.0
#include "world/posix/shell_command.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace cairn::posix {
namespace {

namespace fs = std::filesystem;

class ShellCommands : public testing::Test {
 protected:
  ShellCommands() : folder_(fs::temp_directory_path() / ("shell-" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~ShellCommands() override { fs::remove_all(folder_); }

  std::string file(const std::string& name) const { return (folder_ / name).string(); }
  static std::string text_of(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static int wait_for(ShellCommand& command) {
    for (;;) {
      if (const std::optional<int> ended = command.ended()) return *ended;
      ::poll(nullptr, 0, 1);
    }
  }
  fs::path folder_;
};

TEST_F(ShellCommands, ReadsItsInputToTheEnd) {
  ShellCommand command;
  const std::string input(1 << 20, 'x');
  ASSERT_TRUE(command.start("cat > " + file("out"), input));
  EXPECT_EQ(wait_for(command), 0);
  EXPECT_EQ(text_of(file("out")), input);
  EXPECT_FALSE(command.is_started());
}

TEST_F(ShellCommands, HasNoOtherDescriptorsAndNoBlockedSignals) {
  // High, for shells open low ones of their own.
  const int leak = ::fcntl(STDERR_FILENO, F_DUPFD, 200);
  ASSERT_GT(leak, STDERR_FILENO);
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &before);
  struct sigaction ignored = {};
  struct sigaction was = {};
  ignored.sa_handler = SIG_IGN;
  ::sigaction(SIGUSR1, &ignored, &was);
  ShellCommand command;
  const bool started =
      command
          .start("ls /proc/$$/fd | tr '\\n' ' ' > " + file("fds") +
                     "; exec awk '/SigBlk|SigIgn/ { print $2 }' /proc/self/status > " +
                     file("signals"),
                 "")
          .has_value();
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::sigaction(SIGUSR1, &was, nullptr);
  ASSERT_TRUE(started);
  EXPECT_EQ(wait_for(command), 0);
  ::close(leak);
  EXPECT_EQ(text_of(file("fds")).find(std::to_string(leak) + " "), std::string::npos)
      << text_of(file("fds"));
  std::istringstream signals(text_of(file("signals")));
  uint64_t blocked = 1;
  uint64_t without = 1;
  signals >> std::hex >> blocked >> without;
  EXPECT_EQ(blocked, 0u);
  EXPECT_EQ(without & 0x7fffffff, 0u) << "but those of the C library's own";
}

TEST_F(ShellCommands, IsKilledWithAllThatItStarted) {
  ShellCommand command;
  ASSERT_TRUE(command.start("sleep 1000 & echo $! > " + file("pid") + "; wait", ""));
  while (text_of(file("pid")).empty()) ::poll(nullptr, 0, 1);
  const int below = std::stoi(text_of(file("pid")));
  EXPECT_FALSE(command.ended());
  EXPECT_FALSE(command.start("true", "")) << "one at a time";
  command.kill();
  EXPECT_EQ(wait_for(command), 128 + SIGKILL);
  // Its parent is gone: who has it now takes its status soon.
  const std::string stat = "/proc/" + std::to_string(below) + "/stat";
  for (std::string state = text_of(stat); !state.empty(); state = text_of(stat)) {
    if (state.find(") Z") != std::string::npos) break;
    ::poll(nullptr, 0, 1);
  }
}

TEST_F(ShellCommands, TellsHowItEnded) {
  ShellCommand command;
  ASSERT_TRUE(command.start("exit 3", ""));
  EXPECT_EQ(wait_for(command), 3);
  ASSERT_TRUE(command.start("/no/such/command 2>&-", ""));
  EXPECT_EQ(wait_for(command), 127);
}

}  // namespace
}  // namespace cairn::posix
