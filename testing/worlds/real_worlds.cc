// SPDX-License-Identifier: Apache-2.0
// The adaptors to the real worlds. This file is a plain program's view of the machine: it makes
// what a test needs around its Env (scratch folders, a mute listener, a file cut short).
#include <fcntl.h>        // lint: allow(scratch files)
#include <netinet/in.h>   // lint: allow(a listener that never answers)
#include <sys/eventfd.h>  // lint: allow(a peer's signal)
#include <sys/mman.h>
#include <sys/socket.h>  // lint: allow(a listener that never answers)
#include <unistd.h>      // lint: allow(scratch files)

#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>  // lint: allow(scratch files)
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "env/address.h"
#include "env/disk.h"
#include "env/env.h"
#include "env/sharing.h"
#include "env/world.h"
#include "testing/worlds/scene.h"
#include "testing/worlds/watchdog.h"
#include "testing/worlds/worlds.h"
#include "world/epoll/world.h"
#include "world/uring/world.h"

namespace cairn::conformance {

namespace {

// A folder of its own on a real disk (/tmp is often memory), removed with everything in it.
class ScratchFolder {
 public:
  ScratchFolder() : path_("/var/tmp/cairn-conformance-XXXXXX") {
    CHECK(::mkdtemp(path_.data()) != nullptr, "/var/tmp takes a folder");
    const std::string probe = file("probe");
    const int direct =
        ::open(probe.c_str(), O_CREAT | O_RDWR | O_DIRECT, 0600);  // lint: allow(probe)
    has_direct_ = direct >= 0;
    if (has_direct_) ::close(direct);  // lint: allow(probe)
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);  // lint: allow(scratch files)
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }
  // Whether the file system can bypass the page cache; memory file systems cannot.
  bool has_direct() const { return has_direct_; }

 private:
  std::string path_;
  bool has_direct_ = false;
};

// Listens with a backlog that is full: the kernel drops further attempts, as a dead network would.
class MuteListener {
 public:
  MuteListener() {
    const int listening = ::socket(AF_INET, SOCK_STREAM, 0);  // lint: allow(plain program)
    CHECK(listening >= 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(at);
    auto* generic = reinterpret_cast<sockaddr*>(&at);
    CHECK(::bind(listening, generic, length) == 0);  // lint: allow(plain program)
    CHECK(::listen(listening, 0) == 0);              // lint: allow(plain program)
    CHECK(::getsockname(listening, generic, &length) == 0);
    port_ = ntohs(at.sin_port);
    sockets_.push_back(listening);
    // The first fills the backlog; the others make sure.
    for (int i = 0; i < 4; ++i) {
      const int filler = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);  // lint: allow(plain)
      CHECK(filler >= 0);
      (void)::connect(filler, generic, length);  // lint: allow(plain program)
      sockets_.push_back(filler);
    }
  }
  ~MuteListener() {
    for (const int fd : sockets_) ::close(fd);  // lint: allow(plain program)
  }
  MuteListener(const MuteListener&) = delete;
  MuteListener& operator=(const MuteListener&) = delete;

  env::Address address() const { return env::Address::loopback(port_); }

 private:
  std::vector<int> sockets_;
  uint16_t port_ = 0;
};

bool has_ip6_loopback() {
  const int fd = ::socket(AF_INET6, SOCK_STREAM, 0);  // lint: allow(probe)
  if (fd < 0) return false;
  sockaddr_in6 at{};
  at.sin6_family = AF_INET6;
  at.sin6_addr = in6addr_loopback;
  const bool bound =
      ::bind(fd, reinterpret_cast<sockaddr*>(&at), sizeof(at)) == 0;  // lint: allow(probe)
  ::close(fd);                                                        // lint: allow(probe)
  return bound;
}

class RealScene final : public Scene, private env::Descriptor::Owner {
 public:
  explicit RealScene(env::World& world) : world_(world) {}

  env::Address any_port() const override { return env::Address::loopback(0); }
  std::optional<env::Address> any_port_ip6() const override {
    if (!has_ip6_loopback()) return std::nullopt;
    return env::Address::parse("[::1]:0").value();
  }
  std::optional<env::Address> local_socket(std::string_view name) const override {
    env::Address address;
    address.family = env::Address::Family::kLocal;
    address.path = folder_.file(name);
    return address;
  }
  // TEST-NET-1 of RFC 5737: nobody's.
  env::Address foreign_address() const override { return env::Address::ip4(192, 0, 2, 1, 0); }
  env::Address silent_address() override {
    if (!mute_) mute_.emplace();
    return mute_->address();
  }
  env::DiskOptions disk(std::string_view name, uint64_t size) const override {
    return {
        .path = folder_.file(name), .size = size, .create = true, .direct = folder_.has_direct()};
  }
  void break_reads(const env::DiskOptions& disk) override {
    CHECK(::truncate(disk.path.c_str(), 0) == 0);
  }
  env::Descriptor foreign_memory(env::Env&, uint64_t size) override {
    const int fd = ::memfd_create("foreign", MFD_CLOEXEC);
    CHECK(fd >= 0);
    CHECK(::ftruncate(fd, static_cast<off_t>(size)) == 0);  // lint: allow(a peer's memory)
    return {this, fd};
  }
  void shrink(const env::Descriptor& memory, uint64_t size) override {
    const auto fd = static_cast<int>(memory.handle());
    CHECK(::ftruncate(fd, static_cast<off_t>(size)) == 0);  // lint: allow(a peer's memory)
  }
  env::Descriptor full_signal(env::Env&) override {
    const int fd = ::eventfd(0, EFD_CLOEXEC);  // lint: allow(a peer's signal)
    CHECK(fd >= 0);
    constexpr uint64_t kMax = UINT64_MAX - 1;
    CHECK(::write(fd, &kMax, sizeof(kMax)) == sizeof(kMax));  // lint: allow(a peer's signal)
    return {this, fd};
  }
  void request_stop() override { world_.request_stop(); }

 private:
  void close_descriptor(int64_t handle) override {
    ::close(static_cast<int>(handle));  // lint: allow(a peer's memory)
  }

  env::World& world_;
  ScratchFolder folder_;
  std::optional<MuteListener> mute_;
};

template <class World, class... More>
void run_real(const Setting& setting, Body body, const More&... more) {
  const Watchdog watchdog(current_test());
  env::WorldOptions options;
  options.cpus.assign(setting.cores, -1);
  options.trace = true;
  options.spin = setting.spin;
  options.nap = setting.nap;
  World world(options, more...);
  RealScene scene(world);
  scene.set_encrypted(setting.encrypted);
  const Result<void> ran =
      world.run([&scene, body](env::Env& env) { return run_to_end(env, scene, body); });
  if (!ran && ran.error() == Errc::kUnsupported) GTEST_SKIP() << ran.error().text();
  ASSERT_TRUE(ran.has_value()) << ran.error().text();
  if (!scene.skipped().empty()) GTEST_SKIP() << scene.skipped();
}

}  // namespace

void Uring::run(const Setting& setting, Body body) { run_real<uring::UringWorld>(setting, body); }
void UringSingle::run(const Setting& setting, Body body) {
  run_real<uring::UringWorld>(setting, body, uring::Use{.multishot = false});
}
void Epoll::run(const Setting& setting, Body body) { run_real<epoll::EpollWorld>(setting, body); }

}  // namespace cairn::conformance
