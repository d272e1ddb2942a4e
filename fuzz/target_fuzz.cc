// SPDX-License-Identifier: Apache-2.0
// A whole target in the simulator against any bytes: two connections of one host, made of steps
// that are valid PDUs with fields of the fuzzer's choice, or plain bytes. Whatever comes, the box
// serves the next host and closes in good order.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "env/io.h"
#include "fabric/target/target.h"
#include "input.h"
#include "nvme/controller/registry.h"
#include "nvme/format/fabrics_format.h"
#include "nvme/format/pdu_build.h"
#include "stream/receiver.h"
#include "task/deadline.h"
#include "world/sim/cluster.h"

namespace cairn::fabric {
namespace {

using task::Task;

constexpr uint16_t kPort = 4420;
constexpr size_t kStepsMax = 64;
const std::string kNqn = "nqn.2026-11.io.cairn:fuzz";

// What the next bytes of the input are.
enum class Step : uint8_t {
  kRaw,        // a length byte, and as many bytes to send as they are
  kCommand,    // an entry of 64 bytes, and two bytes of in-capsule length
  kData,       // cid, ttag, offset, length: an H2CData
  kAnswer,     // the oldest R2T is answered as it should be
  kConnectIo,  // the second connection joins
  kOther,      // the other connection from now on
  kWait,       // some milliseconds
  kDrop,       // this connection is closed
  kStepsCount,
};

using fuzz::Input;

// One connection: a stream, and a task that listens to what the box says.
class Peer {
 public:
  explicit Peer(env::Env& env) : env_(env) {}

  Task<void> dial(env::Address to, const nvme::IcReqOptions& options) {
    Result<env::Connection> connection = co_await env_.connect(std::move(to));
    CHECK(connection.has_value());
    stream_ = env_.open(std::move(*connection));
    receiver_.emplace(*stream_, size_t{64} * 1024);
    std::vector<std::byte> request(sizeof(nvme::IcReq));
    nvme::build_ic_req(request, options);
    style_ = {.header_digest = options.header_digest, .data_digest = options.data_digest};
    listener_ = listen();
    co_await send(request);
  }
  Task<void> connect(uint16_t queue_id) {
    nvme::ConnectCommand command;
    command.queue_id = queue_id;
    command.queue_size = 15;
    nvme::ConnectData data;
    data.controller_id = queue_id == 0 ? nvme::kAnyController : uint16_t{1};
    data.subsystem_nqn.set(kNqn);
    data.host_nqn.set("nqn.2014-08.org.nvmexpress:uuid:1");
    co_await command_with(nvme::to_sqe(command), std::as_bytes(std::span(&data, 1)));
  }
  Task<void> command_with(nvme::Sqe sqe, Bytes data) {
    std::vector<std::byte> bytes(nvme::kPduPrefixMax);
    bytes.resize(nvme::build_capsule_cmd(bytes, style_, sqe, static_cast<uint32_t>(data.size())));
    co_await send_with(std::move(bytes), data);
  }
  Task<void> data(nvme::DataPiece piece) {
    piece.length = std::clamp<uint32_t>(piece.length, 1, 1 << 17);
    std::vector<std::byte> bytes(nvme::kPduPrefixMax);
    bytes.resize(nvme::build_h2c_data(bytes, style_, piece, true));
    const std::vector<std::byte> zeroes(piece.length);
    co_await send_with(std::move(bytes), zeroes);
  }
  Task<void> answer() {
    if (asked_.empty()) co_return;
    const nvme::R2t r2t = asked_.front();
    asked_.erase(asked_.begin());
    co_await data({.cid = r2t.cid, .ttag = r2t.ttag, .offset = r2t.offset, .length = r2t.length});
  }
  Task<void> send(Bytes bytes) {
    if (stream_ == nullptr || ended_) co_return;
    task::Deadline deadline(env_, env_.now() + 1_s);
    const Result<void> sent = co_await stream_->write(bytes, deadline.token());
    if (!sent) ended_ = true;
  }
  Task<void> close() {
    if (stream_ == nullptr) co_return;
    stopping_.request();
    co_await listener_;
    receiver_.reset();
    stream_.reset();
  }
  bool is_open() const { return stream_ != nullptr; }

 private:
  Task<void> send_with(std::vector<std::byte> bytes, Bytes data) {
    bytes.insert(bytes.end(), data.begin(), data.end());
    if (style_.data_digest && !data.empty()) {
      const auto digest = nvme::data_digest(std::span(&data, 1));
      bytes.insert(bytes.end(), digest.begin(), digest.end());
    }
    co_await send(bytes);
  }
  // The box speaks well-formed PDUs, whatever it hears.
  Task<void> listen() {
    for (;;) {
      Result<void> read = co_await receiver_->wait_for(sizeof(nvme::R2t), stopping_.token());
      if (!read) co_return;
      const auto common = load<nvme::CommonHeader>(receiver_->bytes());
      CHECK((static_cast<uint8_t>(common.type) & 1) == 1, "from a controller");
      CHECK(common.header_length >= 24 && common.length >= common.header_length);
      if (common.type == nvme::PduType::kR2t) {
        asked_.push_back(load<nvme::R2t>(receiver_->bytes()));
      }
      read = co_await receiver_->skip(common.length, stopping_.token());
      if (!read) co_return;
    }
  }

  env::Env& env_;
  std::unique_ptr<env::Stream> stream_;
  std::optional<stream::Receiver> receiver_;
  nvme::PduStyle style_;
  std::vector<nvme::R2t> asked_;
  task::CancelSource stopping_;
  Task<void> listener_;
  bool ended_ = false;
};

Task<void> run_step(env::Env& env, Input& input, Peer& peer, Peer& other, env::Address box,
                    const nvme::IcReqOptions& style) {
  switch (static_cast<Step>(input.value<uint8_t>() % static_cast<uint8_t>(Step::kStepsCount))) {
    case Step::kRaw:
      co_await peer.send(input.take(input.value<uint8_t>()));
      break;
    case Step::kCommand: {
      const auto sqe = input.value<nvme::Sqe>();
      const std::vector<std::byte> in_capsule(input.value<uint16_t>() % 8200);
      co_await peer.command_with(sqe, in_capsule);
      break;
    }
    case Step::kData: {
      nvme::DataPiece piece;
      piece.cid = input.value<uint16_t>();
      piece.ttag = input.value<uint16_t>();
      piece.offset = input.value<uint16_t>() * 4u;
      piece.length = input.value<uint16_t>() * 4u;
      co_await peer.data(piece);
      break;
    }
    case Step::kAnswer:
      co_await peer.answer();
      break;
    case Step::kConnectIo:
      if (other.is_open()) break;
      co_await other.dial(std::move(box), style);
      co_await other.connect(1);
      break;
    case Step::kWait: {
      const Result<void> slept =
          co_await task::sleep_for(env, Duration{input.value<uint8_t>() * 1'000'000});
      CHECK(slept.has_value());
      break;
    }
    case Step::kDrop:
      co_await peer.close();
      break;
    case Step::kOther:
    case Step::kStepsCount:
      break;
  }
}

Task<void> run_host(env::Env& env, Input input, env::Address box) {
  const auto bits = input.value<uint8_t>();
  const nvme::IcReqOptions style{.data_alignment = static_cast<uint8_t>(bits >> 3),
                                 .header_digest = (bits & 1) != 0,
                                 .data_digest = (bits & 2) != 0};
  Peer admin(env);
  Peer io(env);
  co_await admin.dial(box, style);
  if ((bits & 4) != 0) {
    co_await admin.connect(0);
    nvme::PropertyCommand enable;
    enable.type = nvme::FabricsType::kPropertySet;
    enable.offset = 0x14;
    enable.value = 0x0046'0001;
    co_await admin.command_with(nvme::to_sqe(enable), {});
    const Result<void> slept = co_await task::sleep_for(env, 1_ms);
    CHECK(slept.has_value());
    co_await io.dial(box, style);
    co_await io.connect(1);
  }
  Peer* peer = (bits & 4) != 0 ? &io : &admin;
  for (size_t i = 0; i < kStepsMax && !input.is_over(); ++i) {
    Peer& other = peer == &io ? admin : io;
    Input look = input;
    if (look.value<uint8_t>() % static_cast<uint8_t>(Step::kStepsCount) ==
        static_cast<uint8_t>(Step::kOther)) {
      peer = &other;
    }
    co_await run_step(env, input, *peer, other, box, style);
  }
  const Result<void> slept = co_await task::sleep_for(env, 5_ms);
  CHECK(slept.has_value());
  co_await io.close();
  co_await admin.close();
}

Task<void> run_box(env::Env& env, Input input, env::Address at, bool& done) {
  {
    nvme::Registry registry(env);
    nvme::SubsystemOptions subsystem;
    subsystem.nqn = kNqn;
    CHECK(registry.add_subsystem(subsystem).has_value());
    nvme::NamespaceOptions space;
    space.drive = *drive::Spec::parse("mem:size=64K");
    const Result<uint32_t> added = co_await registry.add_namespace(kNqn, space);
    CHECK(added.has_value());
    TargetOptions options;
    options.handshake_timeout = options.write_timeout = options.data_timeout = 2_s;
    Target target(env, registry, options);
    CHECK(target.listen(at).has_value());
    co_await run_host(env, input, at);
    // It still serves others.
    Peer next(env);
    co_await next.dial(at, {});
    co_await next.connect(0);
    const Result<void> slept = co_await task::sleep_for(env, 5_ms);
    CHECK(slept.has_value());
    CHECK(target.connections() >= 1);
    co_await next.close();
    co_await target.close();
    co_await registry.close();
  }
  done = true;
}

}  // namespace
}  // namespace cairn::fabric

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using cairn::literals::operator""_s;
  const cairn::fabric::Input input(std::as_bytes(std::span(bytes, size)));
  bool done = false;
  cairn::sim::Cluster cluster;
  cairn::sim::Node& node = cluster.node(
      "box", {.cores = 1, .clock = {}, .buffers = {.classes = {{4096, 8}, {1 << 20, 2}}}});
  node.start([&](cairn::env::Env& env) {
    return cairn::fabric::run_box(env, input, node.address(cairn::fabric::kPort), done);
  });
  CHECK(cluster.run_until([&] { return done; }, 1000_s));
  return 0;
}
