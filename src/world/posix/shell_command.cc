// SPDX-License-Identifier: Apache-2.0
#include "world/posix/shell_command.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>

#include "world/posix/fd.h"

namespace cairn::posix {

namespace {

// A file without a name that holds `text`, at its beginning.
Result<Fd> file_of(std::string_view text) {
  Fd file(::memfd_create("cairn-events", MFD_CLOEXEC));
  if (!file.is_open()) return fail(Error::from_errno(errno, "make a file in memory"));
  while (!text.empty()) {
    const ssize_t wrote = ::write(file.get(), text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return fail(Error::from_errno(errno, "write to memory"));
    text.remove_prefix(static_cast<size_t>(wrote));
  }
  if (::lseek(file.get(), 0, SEEK_SET) != 0)
    return fail(Error::from_errno(errno, "go back in memory"));
  return file;
}

}  // namespace

ShellCommand::~ShellCommand() {
  if (child_ <= 0) return;
  kill();
  int status = 0;
  while (::waitpid(child_, &status, 0) < 0 && errno == EINTR) {
  }
}

Result<void> ShellCommand::start(const std::string& command, std::string_view input) {
  if (is_started()) return fail(Errc::kInvalid, "a command runs");
  Result<Fd> file = file_of(input);
  if (!file) return fail(file.error());
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_adddup2(&actions, file->get(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  ::posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  sigset_t none;
  sigset_t all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(
      &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::string shell = "sh";
  std::string option = "-c";
  std::string text = command;
  char* const arguments[] = {shell.data(), option.data(), text.data(), nullptr};
  const int error = ::posix_spawn(&child_, "/bin/sh", &actions, &attributes, arguments, environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error == 0) return {};
  child_ = 0;
  return fail(Error::from_errno(error, "start a command"));
}

std::optional<int> ShellCommand::ended() {
  int status = 0;
  const pid_t got = ::waitpid(child_, &status, WNOHANG);
  if (got == 0 || (got < 0 && errno == EINTR)) return std::nullopt;
  child_ = 0;
  if (got < 0) return 0;  // somebody else has awaited it
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void ShellCommand::kill() {
  if (is_started()) ::kill(-child_, SIGKILL);
}

}  // namespace cairn::posix
