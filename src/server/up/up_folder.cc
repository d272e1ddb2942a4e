// SPDX-License-Identifier: Apache-2.0
#include "server/up/up_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/words.h"
#include "config/files.h"
#include "config/json_text.h"
#include "env/address.h"
#include "server/common/holder_retry.h"
#include "server/common/run_folder.h"
#include "world/posix/holder.h"

namespace cairn::server {

namespace {

namespace fs = std::filesystem;

constexpr uint64_t kDriveBytes = 4ULL << 30;
constexpr int kVersion = 1;
constexpr size_t kFileMax = 64 << 10;
// All that is made in a folder, but for sockets and drives.
constexpr std::array<std::string_view, 5> kMade = {"up.json", "running.json", "meta", "state",
                                                   "lock"};
constexpr std::array<std::string_view, 5> kSockets = {"nbd.sock", "arbiter.sock", "control.sock",
                                                      "up.json.new", "running.json.new"};

std::string drive_name(size_t index) { return fmt::format("d{}", index + 1); }

bool is_there(const std::string& path) {
  struct stat info = {};
  return ::stat(path.c_str(), &info) == 0;
}

Problem cannot_use(const std::string& path, int err) {
  return {fmt::format("the data folder {} cannot be used ({}): name another with --data DIR",
                      in_quotes(path), std::strerror(err))};
}

// The lock of a folder that is there, open and not taken.
Attempt<int> open_lock(const std::string& path) {
  const int lock = ::open((path + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock < 0) return std::unexpected(cannot_use(path, errno));
  return lock;
}

Attempt<Json> read_json(const std::string& file) {
  const Attempt<std::string> text = config::read_file(file, kFileMax);
  if (!text) return std::unexpected(text.error());
  Json json = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || number_at(json, "version") != kVersion) {
    return refuse(
        fmt::format("{} is damaged, or of another version of cairn: put back the file that "
                    "was there, or begin anew with 'cairn up --reset'",
                    in_quotes(file)));
  }
  return json;
}

std::string where(const Json& told) {
  std::string text;
  for (const char* door : {"nbd", "nvme", "resp"}) {
    for (const Json& each : list_at(told, door)) {
      if (!each.is_string()) continue;
      text += fmt::format("{}{} at {}", text.empty() ? "" : ", ", door, each.get<std::string>());
    }
  }
  return text.empty() ? "it is still starting" : text;
}

// Who holds the lock that could not be had.
Problem runs_already(const std::string& path) {
  const Attempt<Json> running = read_json(path + "/running.json");
  const Json told = running && running->contains("told") ? (*running)["told"] : Json::object();
  return {fmt::format(
      "cairn up runs already with {}{} ({}): 'cairn status' says how it is, 'cairn "
      "down' ends it{}",
      in_quotes(path),
      number_at(told, "pid") > 0 ? fmt::format(", as process {}", number_at(told, "pid")) : "",
      where(told), ", and --data DIR starts another one")};
}

Attempt<std::string> draw_uuid() {
  const char* source = "/proc/sys/kernel/random/uuid";
  std::optional<std::string> id = config::first_line(source);
  if (id && parse_uuid(*id)) return std::move(*id);
  return refuse(fmt::format("{} gives no random numbers: mount /proc", source));
}

}  // namespace

UpFolder::~UpFolder() {
  if (lock_ >= 0) ::close(lock_);
}

Attempt<UpFolder> UpFolder::open(const std::string& path, uint64_t drive_bytes) {
  std::error_code error;
  std::string whole = fs::absolute(path, error).lexically_normal().string();
  if (whole.size() > 1 && whole.back() == '/') whole.pop_back();
  if (!error) fs::create_directories(whole, error);
  if (error) {
    return refuse(
        fmt::format("the data folder {} cannot be made ({}): name another with --data DIR",
                    in_quotes(path), error.message()));
  }
  const Attempt<int> lock = open_lock(whole);
  if (!lock) return std::unexpected(lock.error());
  UpFolder folder(std::move(whole), *lock);
  if (!posix::lock_alone(*lock, kHolderTimeout)) return std::unexpected(runs_already(folder.path_));
  folder.was_killed_ = is_there(folder.path_ + "/running.json");
  const Attempt<void> loaded = folder.load(drive_bytes);
  if (!loaded) return std::unexpected(loaded.error());
  return folder;
}

Attempt<void> UpFolder::load(uint64_t drive_bytes) {
  const std::string file = path_ + "/up.json";
  if (!is_there(file)) return make_identity(drive_bytes);
  const Attempt<Json> json = read_json(file);
  if (!json) return std::unexpected(json.error());
  identity_.id = text_at(*json, "id");
  identity_.drive_bytes = number_at(*json, "drive_bytes");
  identity_.box = text_at(*json, "box");
  identity_.next_nsid = static_cast<uint32_t>(number_at(*json, "next_nsid"));
  const std::vector<Json> drives = list_at(*json, "drives");
  bool is_sound = !identity_.id.empty() && identity_.drive_bytes >= kUpDriveBytesMin &&
                  env::Address::parse(identity_.box).has_value() && drives.size() == kUpDrives;
  for (size_t i = 0; is_sound && i < kUpDrives; ++i) {
    const std::optional<Uuid> uuid = parse_uuid(text_at(drives[i], "uuid"));
    const auto nsid = static_cast<uint32_t>(number_at(drives[i], "nsid"));
    is_sound = uuid && nsid > 0 && nsid < identity_.next_nsid;
    if (is_sound) identity_.drives.at(i) = {.name = drive_name(i), .nsid = nsid, .uuid = *uuid};
  }
  if (!is_sound) {
    return refuse(
        fmt::format("{} is damaged: put back the file that was there, or begin anew with "
                    "'cairn up --reset'",
                    in_quotes(file)));
  }
  if (drive_bytes != 0 && drive_bytes != identity_.drive_bytes) {
    return refuse(fmt::format(
        "the drives in {} have {} each: leave --size out, or begin anew with 'cairn up --reset'",
        in_quotes(path_), text_bytes(identity_.drive_bytes)));
  }
  return replace_lost_drives();
}

Attempt<void> UpFolder::make_identity(uint64_t drive_bytes) {
  for (size_t i = 0; i < kUpDrives; ++i) {
    const std::string file = path_ + "/" + drive_name(i);
    if (!is_there(file)) continue;
    return refuse(
        fmt::format("{} is there, and {} is no folder of 'cairn up': name another with --data DIR",
                    in_quotes(file), in_quotes(path_)));
  }
  if (is_there(path_ + "/cairn.toml")) {
    notes_.push_back(
        fmt::format("the drives of an earlier cairn in {0} are left as they are: 'cairn serve "
                    "--config {0}/cairn.toml' serves them",
                    path_));
  }
  const Attempt<std::string> id = draw_uuid();
  if (!id) return std::unexpected(id.error());
  const Uuid bits = *parse_uuid(*id);
  identity_.id = id->substr(0, 8);
  identity_.drive_bytes = drive_bytes == 0 ? kDriveBytes : drive_bytes;
  // All of 127/8 is this machine; the usual 127.0.0.1 is left to others.
  identity_.box = env::Address::ip4(127, static_cast<uint8_t>(1 + bits[13] % 254), bits[14],
                                    static_cast<uint8_t>(1 + bits[15] % 254), 4420)
                      .text();
  for (size_t i = 0; i < kUpDrives; ++i) {
    const Attempt<std::string> uuid = draw_uuid();
    if (!uuid) return std::unexpected(uuid.error());
    identity_.drives.at(i) = {
        .name = drive_name(i), .nsid = identity_.next_nsid++, .uuid = *parse_uuid(*uuid)};
  }
  return save();
}

// A file that is gone is a drive that failed: its copies are made anew, on another one. Before the
// pool was made there is none to lose.
Attempt<void> UpFolder::replace_lost_drives() {
  if (!is_there(meta_path())) return {};
  std::vector<size_t> lost;
  for (size_t i = 0; i < kUpDrives; ++i) {
    if (!is_there(drive_path(identity_.drives.at(i)))) lost.push_back(i);
  }
  if (lost.size() > 1) {
    return refuse(fmt::format(
        "{} of the {} drives in {} are gone, and with them perhaps data: put the files back ({} "
        "to {}), or lose what is there and begin anew with 'cairn up --reset'",
        lost.size(), kUpDrives, in_quotes(path_), drive_name(0), drive_name(kUpDrives - 1)));
  }
  for (const size_t index : lost) {
    notes_.push_back(fmt::format("the file of drive {} is gone: a new drive takes its place",
                                 identity_.drives.at(index).name));
    if (const Attempt<void> replaced = replace_drive(index); !replaced) return replaced;
  }
  return {};
}

Attempt<void> UpFolder::replace_drive(size_t index) {
  const Attempt<std::string> uuid = draw_uuid();
  if (!uuid) return std::unexpected(uuid.error());
  UpDrive& drive = identity_.drives.at(index);
  drive.nsid = identity_.next_nsid++;
  drive.uuid = *parse_uuid(*uuid);
  if (const Attempt<void> saved = save(); !saved) return saved;
  std::error_code error;
  fs::remove(drive_path(drive), error);
  if (!error) return {};
  return refuse(
      fmt::format("{} cannot be removed: {}", in_quotes(drive_path(drive)), error.message()));
}

Attempt<void> UpFolder::save() const {
  Json json = {{"version", kVersion},
               {"id", identity_.id},
               {"drive_bytes", identity_.drive_bytes},
               {"box", identity_.box},
               {"next_nsid", identity_.next_nsid},
               {"drives", Json::array()}};
  for (const UpDrive& drive : identity_.drives) {
    json["drives"].push_back(
        {{"name", drive.name}, {"nsid", drive.nsid}, {"uuid", uuid_text(drive.uuid)}});
  }
  return config::replace_file(path_ + "/up.json", config::json_text(json));
}

std::string UpFolder::socket_path(std::string_view name) const {
  std::string path = fmt::format("{}/{}", path_, name);
  if (env::Address::parse("unix:" + path)) return path;
  return fmt::format("{}/up-{}-{}", run_folder(), identity_.id, name);
}

bool UpFolder::has_direct_access() const {
  const int fd = ::open(path_.c_str(), O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600);
  const int error = errno;
  if (fd >= 0) ::close(fd);
  return fd >= 0 || error != EINVAL;
}

Attempt<void> UpFolder::tell_running(const UpRunning& running) const {
  const Json json = {{"version", kVersion}, {"control", running.control}, {"told", running.told}};
  return config::replace_file(path_ + "/running.json", config::json_text(json));
}

void UpFolder::tell_ended() const { ::unlink((path_ + "/running.json").c_str()); }

Attempt<UpRunning> UpFolder::running(const std::string& path) {
  const auto nobody = [&path] {
    return refuse(
        fmt::format("cairn up does not run with {}: start it with 'cairn up', or name "
                    "its folder with --data DIR",
                    in_quotes(path)));
  };
  if (!is_there(path + "/lock")) return nobody();
  const Attempt<int> lock = open_lock(path);
  if (!lock) return std::unexpected(lock.error());
  const bool is_free = posix::lock_alone(*lock, Duration());
  ::close(*lock);
  if (is_free) return nobody();
  const Attempt<Json> json =
      is_there(path + "/running.json") ? read_json(path + "/running.json") : refuse("");
  if (!json || !json->contains("told")) {
    return refuse(fmt::format("cairn up with {} is just starting or ending: ask again in a moment",
                              in_quotes(path)));
  }
  return UpRunning{.control = text_at(*json, "control"), .told = (*json)["told"]};
}

Attempt<void> UpFolder::wait_until_free(const std::string& path, Duration timeout) {
  const Attempt<int> lock = open_lock(path);
  if (!lock) return std::unexpected(lock.error());
  const bool is_free = posix::lock_alone(*lock, timeout);
  ::close(*lock);
  if (is_free) return {};
  return refuse(
      fmt::format("cairn up with {} has been told to end, and has not yet: 'cairn status' "
                  "says how it is",
                  in_quotes(path)));
}

Attempt<void> UpFolder::reset(const std::string& path) {
  if (!is_there(path)) return {};
  const Attempt<int> lock = open_lock(path);
  if (!lock) return std::unexpected(lock.error());
  Attempt<void> done;
  if (!posix::lock_alone(*lock, kHolderTimeout)) {
    done = std::unexpected(runs_already(path));
  } else if (!is_there(path + "/up.json")) {
    done = {};  // nothing was made there
  } else {
    std::vector<std::string> names;
    names.reserve(kUpDrives + kSockets.size() + kMade.size());
    for (size_t i = 0; i < kUpDrives; ++i) names.push_back(drive_name(i));
    names.insert(names.end(), kSockets.begin(), kSockets.end());
    // What says that the folder is ours goes last: who is interrupted can begin again.
    names.insert(names.end(), kMade.rbegin(), kMade.rend());
    for (const std::string& name : names) {
      const std::string file = fmt::format("{}/{}", path, name);
      std::error_code error;
      fs::remove_all(file, error);
      if (error) {
        done = refuse(fmt::format("{} cannot be removed: {}", in_quotes(file), error.message()));
        break;
      }
    }
  }
  ::close(*lock);
  return done;
}

}  // namespace cairn::server
