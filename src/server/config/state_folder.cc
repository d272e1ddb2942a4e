// SPDX-License-Identifier: Apache-2.0
#include "server/config/state_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/words.h"
#include "config/config.h"
#include "config/files.h"
#include "server/common/holder_retry.h"
#include "server/config/changes_text.h"
#include "world/posix/holder.h"

namespace cairn::server {

namespace {

Problem cannot_use(const std::string& path, int err) {
  return {
      fmt::format("the state folder {} cannot be used ({}): name one that this user may write "
                  "to with --state DIR",
                  in_quotes(path), std::strerror(err))};
}

}  // namespace

Attempt<StateFolder> StateFolder::open(std::string path) {
  std::error_code error;
  const std::string whole = std::filesystem::absolute(path, error).lexically_normal().string();
  if (!error) path = whole;
  std::filesystem::create_directories(path, error);
  if (error) return std::unexpected(cannot_use(path, error.value()));
  const std::string lock_path = path + "/lock";
  const int lock = ::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock < 0) return std::unexpected(cannot_use(path, errno));
  StateFolder state(std::move(path), lock);
  if (!posix::lock_alone(lock, kHolderTimeout)) {
    return refuse(fmt::format(
        "the state folder {} is in use by another server, which 'cairn drive status' may "
        "show: end that one, or name another folder",
        in_quotes(state.path_)));
  }
  return state;
}

StateFolder::StateFolder(StateFolder&& other) noexcept
    : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)) {}

StateFolder::~StateFolder() {
  if (lock_ >= 0) ::close(lock_);
}

Attempt<ServerChanges> StateFolder::load() const {
  struct stat info = {};
  if (::stat(file().c_str(), &info) != 0 && errno == ENOENT) return ServerChanges();
  const Attempt<std::string> text = config::read_file(file(), config::kConfigSizeMax);
  if (!text) return std::unexpected(text.error());
  return parse_changes(*text, file());
}

Attempt<void> StateFolder::save(const ServerChanges& changes) const {
  const std::string text = changes_text(changes);
  // What could not be read again, a path that is not UTF-8 for one, must not replace what can.
  if (const Attempt<ServerChanges> again = parse_changes(text, file());
      text.size() > config::kConfigSizeMax || !again || changes_text(*again) != text) {
    return refuse(fmt::format("{} cannot hold this: name drives in UTF-8, and not too many of them",
                              in_quotes(file())));
  }
  return config::replace_file(file(), text);
}

}  // namespace cairn::server
