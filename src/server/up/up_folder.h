// SPDX-License-Identifier: Apache-2.0
// UpFolder: what `cairn up` keeps in its data folder, which one process at a time has:
//
//   up.json             what it is, as UpIdentity has it
//   lock                held by the process that runs, by flock
//   running.json        where that one is asked, and what it said when it was ready
//   d1 d2 d3 d4         the drives, sparse
//   meta/               the metadata of the pool, in RocksDB
//   state/              changes of what is served
//   *.sock              sockets, if the folder's path is short enough
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/problem.h"
#include "base/units.h"
#include "base/uuid.h"
#include "server/control/control_format.h"

namespace cairn::server {

inline constexpr size_t kUpDrives = 4;
inline constexpr uint64_t kUpDriveBytesMin = 256ULL << 20;
inline constexpr uint64_t kUpDriveBytesMax = 1ULL << 44;

// A drive. One that is put in the place of a lost one has the name of that, and nothing else: its
// number and its UUID are new, so that nobody takes it for the one that it replaces.
struct UpDrive {
  std::string name;
  uint32_t nsid = 0;
  Uuid uuid{};
};

struct UpIdentity {
  std::string id;            // of this folder among all, and in the names of its NVMe subsystems
  uint64_t drive_bytes = 0;  // of each drive
  // Where the drives are served: an address of this machine alone that is this folder's, for the
  // pool remembers it.
  std::string box;
  uint32_t next_nsid = 1;
  std::array<UpDrive, kUpDrives> drives;
};

// Who has a folder now.
struct UpRunning {
  std::string control;  // where it is asked
  Json told;            // what it said when it was ready
};

class UpFolder {
 public:
  // Makes the folder when it is not there, and takes it for this process. Drives whose files are
  // gone are replaced by new ones. `drive_bytes`: of new drives; 0: the usual size. The Problem:
  // another process has it, and where that is reached; or it cannot be used.
  static Attempt<UpFolder> open(const std::string& path, uint64_t drive_bytes);
  // Whoever has it now. The Problem: nobody has, and how to start it.
  static Attempt<UpRunning> running(const std::string& path);
  // Waits until nobody has it, at most so long.
  static Attempt<void> wait_until_free(const std::string& path, Duration timeout);
  // Removes what open() and its users made, and nothing else. The Problem: somebody has it, or
  // something could not be removed.
  static Attempt<void> reset(const std::string& path);

  UpFolder(UpFolder&& other) noexcept
      : path_(std::move(other.path_)),
        identity_(std::move(other.identity_)),
        notes_(std::move(other.notes_)),
        was_killed_(other.was_killed_),
        lock_(std::exchange(other.lock_, -1)) {}
  UpFolder& operator=(UpFolder&&) = delete;
  ~UpFolder();

  const std::string& path() const { return path_; }
  const UpIdentity& identity() const { return identity_; }
  // What the user should know of how it was found, as sentences.
  const std::vector<std::string>& notes() const { return notes_; }
  // The process that had it before did not end in order, and the kernel may hold what it had.
  bool was_killed() const { return was_killed_; }

  std::string drive_path(const UpDrive& drive) const { return path_ + "/" + drive.name; }
  std::string meta_path() const { return path_ + "/meta"; }
  std::string state_path() const { return path_ + "/state"; }
  // Where a local socket of this name can be.
  std::string socket_path(std::string_view name) const;
  // Whether files there can bypass the page cache.
  bool has_direct_access() const;

  // The drive's file goes, with all it holds; another one has its name from now on. Durable when
  // done, but for the file itself, which whoever opens it makes.
  Attempt<void> replace_drive(size_t index);
  // What others are told while this process has the folder, and no more at its end.
  Attempt<void> tell_running(const UpRunning& running) const;
  void tell_ended() const;

 private:
  UpFolder(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}
  Attempt<void> load(uint64_t drive_bytes);
  Attempt<void> make_identity(uint64_t drive_bytes);
  Attempt<void> replace_lost_drives();
  Attempt<void> save() const;

  std::string path_;
  UpIdentity identity_;
  std::vector<std::string> notes_;
  bool was_killed_ = false;
  int lock_;
};

}  // namespace cairn::server
