// SPDX-License-Identifier: Apache-2.0
#include "bench/drive/copies.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/box_process.h"
#include "bench/copy_count/count.h"
#include "bench/drive/guest_load.h"
#include "bench/drive/server_process.h"
#include "bench/drive/vhost_load.h"
#include "bench/temporary_folder.h"

namespace cairn::bench {

namespace {

constexpr uint64_t kDriveSize = 16_MiB;
constexpr uint32_t kDepth = 16;

// What a drive stands on, and what is at most copied for it.
struct Medium {
  const char* name;
  const char* ratio;
};
constexpr std::array<Medium, 3> kMedia = {{{"file", "copies_per_io"},
                                           {"nvme_tcp", "copies_per_io_nvme_tcp"},
                                           {"memory", "copies_per_io_memory"}}};
constexpr std::array<const char*, 2> kDoors = {"vfio_user", "vhost_user"};

struct Job {
  const char* name;
  double read_share;
  uint64_t request_size;
};
constexpr std::array<Job, 4> kJobs = {{{"read4k", 1, 4_KiB},
                                       {"write4k", 0, 4_KiB},
                                       {"read128k", 1, 128_KiB},
                                       {"write128k", 0, 128_KiB}}};

// Memory is written past the cache, by instructions that the library cannot count: that is the one
// copy there is.
bool is_stored_otherwise(const Medium& medium, const Job& job) {
  return std::string_view(medium.name) == "memory" && job.read_share == 0;
}

// What a program with the library has copied so far.
class CopyCount {
 public:
  static Result<CopyCount> make(const std::string& path) {
    std::ofstream file(path, std::ios::binary);
    const uint64_t none = 0;
    file.write(reinterpret_cast<const char*>(&none), sizeof(none));
    file.close();
    if (!file) return fail(Errc::kIo, "make the file that counts copies");
    return CopyCount(path);
  }
  uint64_t bytes() const {
    uint64_t value = 0;
    std::ifstream(path_, std::ios::binary).read(reinterpret_cast<char*>(&value), sizeof(value));
    return value;
  }

 private:
  explicit CopyCount(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

class CopiesBench {
 public:
  CopiesBench(const DriveBenchOptions& options, const TemporaryFolder& folder, std::string library)
      : options_(options), folder_(folder), library_(std::move(library)) {}

  Result<void> run(Report& report) {
    for (const Medium& medium : kMedia) {
      double max = 0;
      for (const std::string door : kDoors) {
        for (const Job& job : kJobs) {
          if (is_stored_otherwise(medium, job)) continue;
          if (options_.progress) {
            options_.progress(fmt::format("copies: {} {} {}", door, medium.name, job.name));
          }
          const Result<double> copies = measure(medium, door, job, report);
          if (!copies) return fail(copies.error());
          max = std::max(max, *copies);
        }
      }
      report.add_ratio(medium.ratio, max);
    }
    return {};
  }

 private:
  Result<double> measure(const Medium& medium, const std::string& door, const Job& job,
                         Report& report) {
    std::unique_ptr<BoxProcess> box;
    const Result<std::string> stack = open_medium(medium.name, box);
    if (!stack) return fail(stack.error());
    const Result<CopyCount> count = CopyCount::make(folder_.file("copies"));
    if (!count) return fail(count.error());
    const std::string socket = folder_.file("guest.sock");
    std::filesystem::remove(socket);
    const std::vector<std::string> command = {
        "env",
        "LD_PRELOAD=" + library_,
        fmt::format("{}={}", kCopyCountVariable, folder_.file("copies")),
        options_.program,
        "serve",
        *stack,
        door == "vfio_user" ? "--vfio-user" : "--vhost-user",
        socket,
        "--control",
        "off",
        "--cores",
        fmt::format("{}", options_.server_cpu)};
    const auto server = ServerProcess::start(command, socket, options_.server_cpu);
    if (!server) return fail(server.error());
    uint64_t before = 0;
    uint64_t after = 0;
    const loadgen::LoadWatch watch{.begins = [&] { before = count->bytes(); },
                                   .ended = [&] { after = count->bytes(); }};
    const Result<uint64_t> requests = carry(door, job, socket, watch);
    if (!requests) return fail(requests.error());
    const double copies =
        static_cast<double>(after - before) / static_cast<double>(*requests * job.request_size);
    report.add({.name = fmt::format("copies_{}", job.name),
                .variant = fmt::format("{}_{}", door, medium.name),
                .unit = "bytes/byte",
                .samples = {copies},
                .extras = {{"requests", static_cast<double>(*requests)}}});
    return copies;
  }

  Result<uint64_t> carry(const std::string& door, const Job& job, const std::string& socket,
                         const loadgen::LoadWatch& watch) const {
    const env::Address at{.family = env::Address::Family::kLocal, .path = socket};
    if (door == "vfio_user") {
      const Result<GuestResult> done = run_guest_load_on(options_.world, options_.client_cpu,
                                                         {.at = at,
                                                          .read_share = job.read_share,
                                                          .depth = kDepth,
                                                          .request_size = job.request_size,
                                                          .size = kDriveSize,
                                                          .warm_up = 0_s,
                                                          .duration = length(),
                                                          .watch = watch});
      if (!done) return fail(done.error());
      return done->requests;
    }
    const Result<VhostLoadResult> done = run_vhost_load_on(options_.world, options_.client_cpu,
                                                           {.at = at,
                                                            .read_share = job.read_share,
                                                            .request_size = job.request_size,
                                                            .depth = kDepth,
                                                            .size = kDriveSize,
                                                            .duration = length(),
                                                            .on_answer = {},
                                                            .watch = watch});
    if (!done) return fail(done.error());
    return done->requests;
  }
  // Copies are counted and not timed: a short time says as much as a long one.
  Duration length() const { return Duration::from_seconds(std::min(options_.seconds, 0.1)); }

  // What stands behind the door, as a stack; a box is started where one is needed.
  Result<std::string> open_medium(std::string_view name, std::unique_ptr<BoxProcess>& box) const {
    if (name == "memory") return fmt::format("mem:size={}", kDriveSize);
    if (name == "file") return fmt::format("file:{},size={}", folder_.file("drive"), kDriveSize);
    Result<std::unique_ptr<BoxProcess>> started = BoxProcess::start(
        {.world = options_.world, .cpu = options_.client_cpu, .memory = kDriveSize});
    if (!started) return fail(started.error());
    box = std::move(*started);
    return box->uri().text();
  }

  const DriveBenchOptions& options_;
  const TemporaryFolder& folder_;
  const std::string library_;
};

}  // namespace

Result<void> bench_copies(const DriveBenchOptions& options, Report& report) {
  const std::filesystem::path library =
      std::filesystem::path(options.program).parent_path() / kCopyCountLibrary;
  std::error_code error;
  if (!std::filesystem::exists(library, error)) {
    report.skip("copies", fmt::format("there is no {}: build cairn_copy_count, without sanitizers",
                                      library.string()));
    return {};
  }
  const Result<TemporaryFolder> folder = TemporaryFolder::make(options.folder);
  if (!folder) return fail(folder.error());
  return CopiesBench(options, *folder, library.string()).run(report);
}

}  // namespace cairn::bench
