// SPDX-License-Identifier: Apache-2.0
// A server, its control socket and a host in the simulated world.
#include "server/serve/server.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "fabric/host/remote_drive.h"
#include "server/control/control_client.h"
#include "server/control/control_server.h"
#include "server/serve/control_commands.h"
#include "task/deadline.h"
#include "world/sim/cluster.h"

namespace cairn::server {
namespace {

using fabric::RemoteDrive;
using task::Task;

constexpr const char* kNqn = "nqn.2026-11.io.cairn:test";
constexpr const char* kSocket = "/control";

drive::Spec spec(std::string_view text) { return *drive::Spec::parse(text); }

ServerOptions serving(const std::vector<std::string>& drives) {
  ServerOptions options;
  options.listeners.push_back({.address = env::Address::ip4(0, 0, 0, 0, 4420)});
  options.subsystems.emplace_back();
  options.subsystems[0].options.nqn = kNqn;
  for (const std::string& each : drives) {
    options.subsystems[0].namespaces.push_back({.drive = spec(each)});
  }
  return options;
}

// One process that is server and host; its body is a function of this fixture.
class ServerInSim : public testing::Test {
 public:
  using Body = Task<void> (*)(env::Env&, ServerInSim&);
  std::string log;
  ServerChanges kept;
  bool keeps = true;
  sim::Node& node() { return cluster_->node("server"); }
  sim::Node& node_behind() { return cluster_->node("behind"); }

  ServerHooks hooks() {
    return {
        .log = [this](config::LogLevel level,
                      std::string_view line) { log += fmt::format("{}: {}\n", name(level), line); },
        .keep = [this](const ServerChanges& changes) -> Attempt<void> {
          if (!keeps) return refuse("the disk is full");
          kept = changes;
          return {};
        }};
  }
  fabric::Uri uri(uint32_t nsid) {
    fabric::Uri uri{.paths = {node().address(4420)}, .nqn = kNqn, .nsid = nsid};
    uri.options.host_nqn = "nqn.2026-11.io.cairn:host";
    uri.options.loss_timeout = 1_s;
    return uri;
  }

 protected:
  void run(Body body, uint32_t cores = 1) {
    cluster_ = std::make_unique<sim::Cluster>();
    cluster_->node("server", {.cores = cores}).start([this, body](env::Env& env) {
      return body(env, *this);
    });
    EXPECT_TRUE(cluster_->run_until([this] { return !node().is_running(); }, 1000_s))
        << cluster_->report();
    cluster_.reset();
  }
  std::unique_ptr<sim::Cluster> cluster_;
};

Task<std::unique_ptr<RemoteDrive>> connect(env::Env& env, ServerInSim& test, uint32_t nsid) {
  Result<std::unique_ptr<RemoteDrive>> drive = co_await RemoteDrive::open(env, test.uri(nsid));
  EXPECT_TRUE(drive) << drive.error().text();
  co_return drive ? std::move(*drive) : nullptr;
}

Task<Result<void>> write_block(RemoteDrive& drive, Bytes data) {
  Result<void> written = co_await drive.write(Lba(0), data);
  co_return written;
}
Task<Result<void>> read_block(RemoteDrive& drive, MutableBytes data) {
  Result<void> read = co_await drive.read(Lba(0), data);
  co_return read;
}

Task<void> drains(env::Env& env, ServerInSim& test) {
  Server server(env, serving({"file:/d0,size=1M"}), {}, test.hooks());
  const Attempt<void> opened = co_await server.open();
  EXPECT_TRUE(opened) << opened.error().text;
  std::unique_ptr<RemoteDrive> drive = co_await connect(env, test, 1);
  const std::vector<std::byte> data(4096, std::byte{7});
  test.node().disk("/d0").stall(5_s);
  Task<Result<void>> writing = write_block(*drive, data);
  const Result<void> slept = co_await task::sleep_for(env, 10_ms);
  EXPECT_TRUE(slept);
  const Time asked = env.now();
  co_await server.close();
  EXPECT_LT(env.now(), asked + 6_s);
  const Result<void> written = co_await writing;
  EXPECT_TRUE(written) << written.error().text();
  EXPECT_EQ(drive->counters().resent, 0u);
  EXPECT_EQ(test.node().disk("/d0").volatile_block_count(), 0u) << "drives are flushed";
  EXPECT_EQ(test.log, "");
  co_await drive->close();
}
TEST_F(ServerInSim, ClosingAnswersWhatIsInFlightAndFlushes) {
  for (const uint32_t cores : {1u, 2u, 3u}) {
    SCOPED_TRACE(cores);
    run(drains, cores);
  }
}

Task<void> gives_up(env::Env& env, ServerInSim& test) {
  ServerOptions options = serving({"file:/d0,size=1M"});
  options.drain_timeout = 2_s;
  Server server(env, std::move(options), {}, test.hooks());
  const Attempt<void> opened = co_await server.open();
  EXPECT_TRUE(opened) << opened.error().text;
  std::unique_ptr<RemoteDrive> drive = co_await connect(env, test, 1);
  const std::vector<std::byte> data(4096, std::byte{7});
  test.node().disk("/d0").stall(1000_s);
  Task<Result<void>> writing = write_block(*drive, data);
  const Result<void> slept = co_await task::sleep_for(env, 10_ms);
  EXPECT_TRUE(slept);
  const Time asked = env.now();
  co_await server.close();
  EXPECT_LT(env.now(), asked + 5_s);
  EXPECT_NE(test.log.find("connections had commands in flight"), std::string::npos) << test.log;
  const Result<void> written = co_await writing;
  EXPECT_FALSE(written);
  co_await drive->close();
}
TEST_F(ServerInSim, ADriveThatHangsDoesNotHoldTheEndUp) { run(gives_up); }

Task<void> fails_alone(env::Env& env, ServerInSim& test) {
  Server server(env, serving({"file:/d0,size=1M", "file:/d1,size=1M"}), {}, test.hooks());
  const Attempt<void> opened = co_await server.open();
  EXPECT_TRUE(opened) << opened.error().text;
  std::unique_ptr<RemoteDrive> bad = co_await connect(env, test, 1);
  std::unique_ptr<RemoteDrive> good = co_await connect(env, test, 2);
  std::vector<std::byte> data(4096, std::byte{7});
  test.node().disk("/d0").full();
  Result<void> done = co_await write_block(*bad, data);
  EXPECT_EQ(done.error(), Errc::kNoSpace);
  done = co_await write_block(*good, data);
  EXPECT_TRUE(done) << done.error().text();
  EXPECT_NE(test.log.find("error: namespace 1 of nqn.2026-11.io.cairn:test fails"),
            std::string::npos)
      << test.log;
  EXPECT_NE(test.log.find("free some space where its file is"), std::string::npos) << test.log;
  test.node().disk("/d0").full(false);
  test.node().disk("/d0").fail_reads();
  const Result<void> slept = co_await task::sleep_for(env, 2_s);
  EXPECT_TRUE(slept);
  test.log.clear();
  for (int i = 0; i < 10; ++i) {
    done = co_await read_block(*bad, data);
    EXPECT_EQ(done.error(), Errc::kIo);
  }
  EXPECT_NE(test.log.find("look after its file or disk"), std::string::npos) << test.log;
  EXPECT_LT(std::ranges::count(test.log, '\n'), 10) << "a line a second";
  done = co_await read_block(*good, data);
  EXPECT_TRUE(done) << done.error().text();
  co_await bad->close();
  co_await good->close();
  co_await server.close();
}
TEST_F(ServerInSim, ADriveThatFailsIsLoggedAndHarmsNoOther) { run(fails_alone, 2); }

Task<void> serve_memory(env::Env& env) {
  Server server(env, serving({"mem:size=1M"}), {}, {});
  const Attempt<void> opened = co_await server.open();
  EXPECT_TRUE(opened) << opened.error().text;
  task::Event never;
  const Result<void> stopped = co_await never.wait(env.stop_token());
  EXPECT_FALSE(stopped);
  co_await server.close();
}

Task<void> stands_on_a_box(env::Env& env, ServerInSim& test) {
  test.node_behind().start([](env::Env& there) { return serve_memory(there); });
  Result<void> slept = co_await task::sleep_for(env, 100_ms);
  EXPECT_TRUE(slept);
  ServerOptions options = serving({});
  options.subsystems[0].namespaces.push_back(
      {.stack = fmt::format("nvme-tcp://{}/{}?reconnect_delay_max=50ms&quiesce=10ms",
                            test.node_behind().address(4420).text(), kNqn)});
  Server server(env, options, {}, test.hooks());
  const Attempt<void> opened = co_await server.open();
  EXPECT_TRUE(opened) << opened.error().text;
  std::unique_ptr<RemoteDrive> drive = co_await connect(env, test, 1);
  std::vector<std::byte> data(4096, std::byte{7});
  Result<void> done = co_await write_block(*drive, data);
  EXPECT_TRUE(done) << done.error().text();
  test.node_behind().kill();
  test.node_behind().restart();
  done = co_await write_block(*drive, data);
  EXPECT_FALSE(done);
  EXPECT_NE(test.log.find("bring back the medium that was behind it"), std::string::npos)
      << test.log;
  EXPECT_EQ(test.log.find("look after its file or disk"), std::string::npos) << test.log;
  co_await drive->close();
  co_await server.close();
  test.node_behind().kill();
}
TEST_F(ServerInSim, ANewMediumBehindItIsNamed) { run(stands_on_a_box, 2); }

Task<Json> ask(env::Env& env, ControlRequest request) {
  Attempt<Json> answer = co_await ask_server(env, kSocket, std::move(request), 10_s);
  EXPECT_TRUE(answer) << answer.error().text;
  co_return answer ? std::move(*answer) : Json();
}

Task<void> is_controlled(env::Env& env, ServerInSim& test) {
  using Command = ControlRequest::Command;
  Server server(env, serving({"file:/d0,size=1M"}), {}, test.hooks());
  ControlServer control(
      env, [&server](ControlRequest request) { return execute(server, std::move(request)); });
  const Attempt<void> opened = co_await server.open();
  EXPECT_TRUE(opened) << opened.error().text;
  const env::Address at{.family = env::Address::Family::kLocal, .path = kSocket};
  const Result<void> listening = control.listen(at);
  EXPECT_TRUE(listening) << listening.error().text();
  Json answer = co_await ask(env, {.command = Command::kDriveAdd, .stack = "file:/d1,size=1M"});
  EXPECT_EQ(number_at(answer, "nsid"), 2u);
  std::unique_ptr<RemoteDrive> drive = co_await connect(env, test, 2);
  const std::vector<std::byte> data(4096, std::byte{7});
  const Result<void> written = co_await write_block(*drive, data);
  EXPECT_TRUE(written);
  answer = co_await ask(env, {.command = Command::kStats});
  EXPECT_EQ(number_at(list_at(answer, "namespaces")[1], "bytes_written"), 4096u);
  answer = co_await ask(env, {.command = Command::kStatus});
  const Json controller = list_at(list_at(answer, "subsystems")[0], "controllers")[0];
  EXPECT_EQ(text_at(controller, "host"), "nqn.2026-11.io.cairn:host");
  EXPECT_EQ(number_at(controller, "queues"), 2u);
  co_await drive->close();
  answer = co_await ask(env, {.command = Command::kDriveRemove, .drive = "d0"});
  answer = co_await ask(env, {.command = Command::kDriveResize, .drive = "d1", .size = 2_MiB});
  answer = co_await ask(env, {.command = Command::kHostAdd, .host = "nqn.2026-11.io.cairn:h"});
  answer = co_await ask(
      env, {.command = Command::kDriveAna, .group = 3, .state = nvme::AnaState::kInaccessible});
  test.keeps = false;
  Attempt<Json> unkept =
      co_await ask_server(env, kSocket, {.command = Command::kDriveRemove, .drive = "d1"}, 10_s);
  EXPECT_NE(unkept.error().text.find("will not survive a restart: the disk is full"),
            std::string::npos)
      << unkept.error().text;
  co_await control.close();
  co_await server.close();
}

Task<void> restarts(env::Env& env, ServerInSim& test) {
  Server server(env, serving({"file:/d0,size=1M"}), test.kept, test.hooks());
  const Attempt<void> opened = co_await server.open();
  EXPECT_TRUE(opened) << opened.error().text;
  const std::vector<nvme::NamespaceInfo> all = server.registry().namespaces(kNqn);
  EXPECT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].options.nsid, 2u);
  EXPECT_EQ(all[0].geometry.bytes(), 2_MiB);
  EXPECT_EQ(server.registry().subsystems()[0].hosts,
            std::vector<std::string>{"nqn.2026-11.io.cairn:h"});
  EXPECT_FALSE(server.registry().subsystems()[0].allow_any_host);
  co_await server.close();
}
Task<void> is_controlled_and_restarts(env::Env& env, ServerInSim& test) {
  co_await is_controlled(env, test);
  co_await restarts(env, test);
}
TEST_F(ServerInSim, ChangesAreMadeAtOnceAndHoldAfterARestart) {
  run(is_controlled_and_restarts, 2);
}

// Drives that do not open: one is missing, and one belongs to somebody else.
Task<void> serves_the_others(env::Env& env, ServerInSim& test) {
  Server server(env, serving({"file:/late", "file:/d1,size=1M"}), {}, test.hooks());
  const Attempt<void> opened = co_await server.open();
  EXPECT_TRUE(opened) << opened.error().text;
  std::vector<nvme::NamespaceInfo> all = server.registry().namespaces(kNqn);
  EXPECT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].options.nsid, 2u);
  EXPECT_NE(test.log.find("drive d0 is failing: not open: "), std::string::npos) << test.log;
  EXPECT_EQ(server.health(*server.drives()[0])->now.health, drive::Health::kFailing);
  const Attempt<Json> status = co_await execute(server, {});
  EXPECT_EQ(text_at(*status, "health"), "failing");
  EXPECT_EQ(text_at(list_at(*status, "drives")[0], "name"), "d0");
  const Attempt<Json> metrics =
      co_await execute(server, {.command = ControlRequest::Command::kMetrics});
  EXPECT_NE(text_at(*metrics, "metrics").find("cairn_drive_health{drive=\"d0\"} 2"),
            std::string::npos);
  // Its number is nobody else's.
  const Attempt<ServedDrive*> added = co_await server.add_drive("", {.drive = spec("mem:size=1M")});
  EXPECT_TRUE(added.has_value() && (*added)->space.nsid == 3u);
  const Attempt<ServedDrive*> taken =
      co_await server.add_drive("", {.nsid = 1, .drive = spec("mem:size=1M")});
  EXPECT_FALSE(taken);
  Attempt<void> again = co_await server.reopen_drive("d0");
  EXPECT_FALSE(again);
  test.node().disk("/late").create(1_MiB);
  again = co_await server.reopen_drive("d0");
  EXPECT_TRUE(again) << again.error().text;
  all = server.registry().namespaces(kNqn);
  EXPECT_EQ(all.size(), 3u);
  EXPECT_NE(test.log.find("drive d0 is ok again: not open is over"), std::string::npos) << test.log;
  co_await server.close();
}
TEST_F(ServerInSim, ADriveThatDoesNotOpenKeepsNoOtherDown) { run(serves_the_others, 2); }

ptrdiff_t not_served(const Server& server) {
  return std::ranges::count_if(server.drives(),
                               [](const auto& drive) { return !drive->problem.empty(); });
}

Task<void> comes_by_itself(env::Env& env, ServerInSim& test) {
  Server server(env, serving({"file:/late", "file:/never", "file:/d1,size=1M"}), {}, test.hooks());
  const Attempt<void> opened = co_await server.open();
  EXPECT_TRUE(opened) << opened.error().text;
  test.node().disk("/late").create(1_MiB);
  const Result<void> slept = co_await task::sleep_for(env, 6_s);
  EXPECT_TRUE(slept);
  EXPECT_EQ(server.registry().namespaces(kNqn).size(), 2u);
  EXPECT_EQ(not_served(server), 1);
  const Attempt<void> removed = co_await server.remove_drive("d1");
  EXPECT_TRUE(removed) << removed.error().text;
  EXPECT_EQ(not_served(server), 0);
  EXPECT_TRUE(test.kept[kNqn].removed.contains(2));
  co_await server.close();
}
TEST_F(ServerInSim, ADriveThatDidNotOpenIsTriedAgainByItself) { run(comes_by_itself, 2); }

// Power fails between the change of a file's size and that of what is kept, in either direction.
Task<void> resizes_in_order(env::Env& env, ServerInSim& test) {
  std::vector<uint64_t> sizes;  // of the file, whenever something is kept
  ServerHooks hooks = test.hooks();
  hooks.keep = [&](const ServerChanges& changes) -> Attempt<void> {
    sizes.push_back(test.node().disk("/d0").size());
    test.kept = changes;
    return {};
  };
  Server server(env, serving({"file:/d0,size=2M"}), {}, hooks);
  const Attempt<void> opened = co_await server.open();
  EXPECT_TRUE(opened) << opened.error().text;
  Attempt<void> resized = co_await server.resize_drive("d0", 4_MiB);
  EXPECT_TRUE(resized);
  EXPECT_EQ(sizes, (std::vector<uint64_t>{4_MiB}));
  sizes.clear();
  resized = co_await server.resize_drive("d0", 1_MiB);
  EXPECT_TRUE(resized);
  EXPECT_EQ(sizes.at(0), 4_MiB) << "what is to shrink is kept first";
  EXPECT_EQ(test.kept[kNqn].resized.at(1), 1_MiB);
  EXPECT_EQ(test.node().disk("/d0").size(), 1_MiB);
  resized = co_await server.resize_drive("d0", 1000);
  EXPECT_FALSE(resized);
  EXPECT_EQ(test.kept[kNqn].resized.at(1), 1_MiB);
  co_await server.close();
}
Task<void> opens_a_larger_file(env::Env& env, ServerInSim& test) {
  co_await resizes_in_order(env, test);
  Server server(env, serving({"file:/d0,size=512K", "file:/d1,size=1M"}), {}, test.hooks());
  const Attempt<void> opened = co_await server.open();
  EXPECT_TRUE(opened) << opened.error().text;
  EXPECT_EQ(server.registry().namespaces(kNqn).at(0).geometry.bytes(), 1_MiB);
  EXPECT_NE(
      test.log.find("drive d0 has 1M, and its line says size=512K: it keeps what its file has"),
      std::string::npos)
      << test.log;
  co_await server.close();
}
TEST_F(ServerInSim, AFileIsNeverSmallerThanWhatIsKeptOfIt) { run(opens_a_larger_file, 2); }

// What a host says of a target that is gone.
Task<void> leaves_its_host(env::Env& env, ServerInSim& test) {
  Server server(env, serving({"mem:size=1M"}), {}, test.hooks());
  const Attempt<void> opened = co_await server.open();
  EXPECT_TRUE(opened) << opened.error().text;
  std::unique_ptr<RemoteDrive> drive = co_await connect(env, test, 1);
  EXPECT_TRUE(drive->concerns().empty());
  co_await server.close();
  const Result<void> slept = co_await task::sleep_for(env, 2_s);
  EXPECT_TRUE(slept);
  const std::vector<drive::Concern> concerns = drive->concerns();
  EXPECT_EQ(concerns.size(), 1u);
  if (!concerns.empty()) {
    EXPECT_EQ(concerns[0].code, "unreachable");
    EXPECT_EQ(concerns[0].health, drive::Health::kFailing);
    EXPECT_NE(concerns[0].what.find(test.node().address(4420).text()), std::string::npos)
        << concerns[0].what;
    EXPECT_NE(concerns[0].what.find("requests fail"), std::string::npos) << concerns[0].what;
  }
  co_await drive->close();
}
TEST_F(ServerInSim, AHostSaysThatItsTargetIsGone) { run(leaves_its_host, 2); }

Task<void> refuses_strangers(env::Env& env, ServerInSim& test) {
  ServerOptions options = serving({"mem:size=1M"});
  options.subsystems[0].options.allow_any_host = false;
  options.subsystems[0].options.hosts = {"nqn.2026-11.io.cairn:other"};
  Server server(env, options, {}, test.hooks());
  const Attempt<void> opened = co_await server.open();
  EXPECT_TRUE(opened) << opened.error().text;
  const Time begun = env.now();
  for (int i = 0; i < 3; ++i) {
    const auto drive = co_await RemoteDrive::open(env, test.uri(1));
    EXPECT_FALSE(drive);
  }
  const auto seconds = (env.now() - begun) / 1_s;
  EXPECT_NE(test.log.find("warn: nqn.2026-11.io.cairn:host at "), std::string::npos) << test.log;
  EXPECT_NE(test.log.find("is not on the list of hosts of nqn.2026-11.io.cairn:test: 'cairn host "
                          "add nqn.2026-11.io.cairn:host'"),
            std::string::npos)
      << test.log;
  EXPECT_LE(std::ranges::count(test.log, '\n'), seconds + 1) << test.log;
  const uint64_t refused = server.registry().refused_hosts(kNqn);
  EXPECT_GE(refused, 3u);
  const Attempt<Json> metrics =
      co_await execute(server, {.command = ControlRequest::Command::kMetrics});
  EXPECT_NE(
      text_at(*metrics, "metrics")
          .find(fmt::format("cairn_box_hosts_refused_total{{nqn=\"{}\"}} {}\n", kNqn, refused)),
      std::string::npos);
  co_await server.close();
}
TEST_F(ServerInSim, RefusedHostsAreLoggedOnceASecondAndCounted) { run(refuses_strangers, 2); }

// Registers a key with PTPL set, acquires Write Exclusive.
Task<void> reserve(RemoteDrive& drive) {
  nvme::Sqe sqe = nvme::Sqe::make(nvme::IoOpcode::kReservationRegister, 1);
  sqe.cdw10 = 0xc000'0000u;  // CPTPL: set
  std::vector<std::byte> data(16);
  data[8] = std::byte{5};
  Result<nvme::Cqe> done = co_await drive.execute(sqe, data);
  EXPECT_TRUE(done && done->get_status().ok());
  sqe = nvme::Sqe::make(nvme::IoOpcode::kReservationAcquire, 1);
  sqe.cdw10 = 1u << 8;  // write exclusive
  data.assign(16, std::byte{0});
  data[0] = std::byte{5};
  done = co_await drive.execute(sqe, data);
  EXPECT_TRUE(done && done->get_status().ok());
}

ServerOptions keeping(const std::vector<std::string>& drives) {
  ServerOptions options = serving(drives);
  options.reservations = "/state";
  return options;
}

Task<void> keeps_reservations(env::Env& env, ServerInSim& test) {
  const std::vector<std::byte> data(4096, std::byte{7});
  {
    Server server(env, keeping({"file:/d0,size=1M"}), {}, test.hooks());
    const Attempt<void> opened = co_await server.open();
    EXPECT_TRUE(opened) << opened.error().text;
    std::unique_ptr<RemoteDrive> drive = co_await connect(env, test, 1);
    co_await reserve(*drive);
    co_await drive->close();
    co_await server.close();
  }
  {
    Server server(env, keeping({"file:/d0,size=1M"}), {}, test.hooks());
    const Attempt<void> opened = co_await server.open();
    EXPECT_TRUE(opened) << opened.error().text;
    fabric::Uri uri = test.uri(1);
    uri.options.host_nqn = "nqn.2026-11.io.cairn:other";
    Result<std::unique_ptr<RemoteDrive>> other = co_await RemoteDrive::open(env, uri);
    EXPECT_TRUE(other);
    Result<void> written = co_await write_block(**other, data);
    EXPECT_EQ(written.error(), Errc::kDenied) << "another host has it";
    const Attempt<void> removed = co_await server.remove_drive("d0");
    EXPECT_TRUE(removed);
    const Attempt<ServedDrive*> added =
        co_await server.add_drive("", {.nsid = 1, .drive = spec("file:/d0")});
    EXPECT_TRUE(added);
    co_await (*other)->close();
    co_await server.close();
  }
  Server server(env, keeping({"file:/d0,size=1M"}), {}, test.hooks());
  Attempt<void> opened = co_await server.open();
  EXPECT_TRUE(opened) << opened.error().text;
  std::unique_ptr<RemoteDrive> drive = co_await connect(env, test, 1);
  Result<void> written = co_await write_block(*drive, data);
  EXPECT_TRUE(written) << "reservations go with their namespace";
  co_await drive->close();
  co_await server.close();
  // Both halves are damaged.
  const std::string path = ReservationFiles(env, "/state").path(kNqn, 1);
  test.node().disk(path).corrupt({.offset = 0, .length = 24});
  test.node().disk(path).corrupt({.offset = 4096, .length = 24});
  Server damaged(env, keeping({"file:/d0,size=1M"}), {}, test.hooks());
  opened = co_await damaged.open();
  EXPECT_FALSE(opened);
  EXPECT_NE(opened.error().text.find(path), std::string::npos) << opened.error().text;
  EXPECT_NE(opened.error().text.find("move it away"), std::string::npos);
  co_await damaged.close();
}
TEST_F(ServerInSim, ReservationsThatPersistHoldAfterARestart) { run(keeps_reservations, 2); }

Task<void> serves_by_listener(env::Env& env, ServerInSim& test) {
  ServerOptions options = serving({"mem:size=1M"});
  options.subsystems.emplace_back();
  options.subsystems[1].options.nqn = "nqn.2026-11.io.cairn:other";
  options.listeners[0].subsystems = {"nqn.2026-11.io.cairn:other"};
  options.listeners.push_back({.address = env::Address::ip4(0, 0, 0, 0, 4421)});
  Server server(env, options, {}, test.hooks());
  const Attempt<void> opened = co_await server.open();
  EXPECT_TRUE(opened) << opened.error().text;
  Result<std::unique_ptr<RemoteDrive>> here = co_await RemoteDrive::open(env, test.uri(1));
  EXPECT_FALSE(here) << "not by this listener";
  fabric::Uri uri = test.uri(1);
  uri.paths = {test.node().address(4421)};
  here = co_await RemoteDrive::open(env, uri);
  EXPECT_TRUE(here);
  if (here) co_await (*here)->close();
  co_await server.close();
}
TEST_F(ServerInSim, AListenerCanBeForSomeSubsystemsOnly) { run(serves_by_listener); }

Task<void> refuses(env::Env& env, ServerInSim& test) {
  Server none(env, serving({"file:/none", "file:/none"}), {}, test.hooks());
  Attempt<void> opened = co_await none.open();
  EXPECT_FALSE(opened);
  EXPECT_NE(opened.error().text.find("add ,size=8G to have the file made"), std::string::npos)
      << opened.error().text;
  co_await none.close();
  Server first(env, serving({"file:/d0,size=1M", "file:/d0"}), {}, test.hooks());
  opened = co_await first.open();
  EXPECT_TRUE(opened);
  EXPECT_NE(test.log.find("served as another namespace already"), std::string::npos) << test.log;
  Server second(env, serving({"mem:size=1M"}), {}, test.hooks());
  opened = co_await second.open();
  EXPECT_NE(opened.error().text.find("end what listens there"), std::string::npos);
  co_await second.close();
  co_await first.close();
}
TEST_F(ServerInSim, WhatCannotBeServedIsTold) { run(refuses); }

}  // namespace
}  // namespace cairn::server
