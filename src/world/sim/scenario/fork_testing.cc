// SPDX-License-Identifier: Apache-2.0
#include "world/sim/scenario/fork_testing.h"

#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>  // lint: allow(a simulation that may abort runs in a child process)

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>

#include "base/check.h"

namespace cairn::sim {

namespace {

// One unnamed file per channel: no pipe that could fill up while nobody reads.
class Channel {
 public:
  Channel() : file_(std::tmpfile()) {  // lint: allow(carries a child's answer)
    CHECK(file_ != nullptr, "a temporary file can be made");
  }
  ~Channel() { std::fclose(file_); }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  int descriptor() const { return fileno(file_); }
  void put(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), file_);
    std::fflush(file_);
  }
  std::string contents() {
    std::rewind(file_);
    std::string text;
    char part[4096];
    size_t count = 0;
    while ((count = std::fread(part, 1, sizeof(part), file_)) > 0) text.append(part, count);
    return text;
  }

 private:
  std::FILE* file_;
};

[[noreturn]] void be_the_child(const std::function<std::string()>& function, uint32_t limit_s,
                               Channel& answer, const Channel& errors) {
  ::dup2(errors.descriptor(), STDERR_FILENO);
  ::alarm(limit_s);  // ends a program that spins without the simulator noticing
  answer.put(function());
  std::fflush(nullptr);
  ::_exit(0);
}

}  // namespace

ForkedResult run_forked(const std::function<std::string()>& function, uint32_t limit_s) {
  Channel answer;
  Channel errors;
  std::fflush(nullptr);
  const pid_t child = ::fork();
  CHECK(child >= 0, "a child process can be made");
  if (child == 0) be_the_child(function, limit_s, answer, errors);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) CHECK(errno == EINTR);
  ForkedResult result;
  result.has_ended_well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  result.answer = answer.contents();
  result.errors = errors.contents();
  if (WIFSIGNALED(status)) {
    result.errors += std::string("ended by signal: ") + strsignal(WTERMSIG(status)) + "\n";
  }
  return result;
}

}  // namespace cairn::sim
