// SPDX-License-Identifier: Apache-2.0
#include "testing/guest/client.h"

#include <algorithm>
#include <utility>

#include "door/vfio_user/limits.h"

namespace cairn::door::vfio_user {

task::Task<Result<std::unique_ptr<Client>>> Client::connect(env::Env& env, env::Address at,
                                                            task::CancelToken token) {
  env::Sharing* sharing = env::sharing(env);
  if (sharing == nullptr) {
    co_return fail(Errc::kUnsupported, "vfio-user in a world that shares nothing");
  }
  Result<env::Connection> connection = co_await env.connect(std::move(at), token);
  if (!connection) co_return fail(connection.error());
  Result<std::unique_ptr<env::LocalStream>> stream = sharing->open_local(std::move(*connection));
  if (!stream) co_return fail(stream.error());
  std::unique_ptr<Client> client(new Client(*sharing, std::move(*stream)));
  Result<void> ready = co_await client->greet(token);
  if (ready) {
    ready = co_await client->find_doorbells(token);
  }
  if (!ready) co_return fail(ready.error());
  co_return client;
}

task::Task<Result<void>> Client::greet(task::CancelToken token) {
  const Result<std::vector<std::byte>> answer =
      co_await call(Command::kVersion, propose_version(), {}, nullptr, token);
  if (!answer) co_return fail(answer.error());
  const Result<Capabilities> server = parse_version(*answer);
  if (!server) co_return fail(server.error());
  server_ = *server;
  co_return Result<void>{};
}

task::Task<Result<void>> Client::find_doorbells(task::CancelToken token) {
  constexpr uint32_t kRoom = sizeof(RegionInfo) + sizeof(SparseMap);
  const RegionInfo wanted{.argsz = kRoom,
                          .flags = {},
                          .index = uint32_t{kBar0},
                          .capability_offset = {},
                          .size = {},
                          .offset = {}};
  std::vector<env::Descriptor> descriptors;
  const Result<std::vector<std::byte>> answer =
      co_await call(Command::kGetRegionInfo, payload_of(wanted), {}, &descriptors, token);
  if (!answer) co_return fail(answer.error());
  if (answer->size() < sizeof(RegionInfo)) co_return fail(Errc::kCorrupt, "a short region info");
  const auto info = load<RegionInfo>(*answer);
  if ((info.flags & kRegionMappable) == 0) co_return Result<void>{};
  if (answer->size() < kRoom || descriptors.size() != 1) {
    co_return fail(Errc::kCorrupt, "a region that is mapped without a descriptor");
  }
  const auto area = load<SparseMap>(Bytes(*answer).subspan(sizeof(RegionInfo)));
  Result<std::unique_ptr<env::SharedMemory>> page =
      sharing_.map_shared(descriptors[0], {.offset = info.offset + area.offset, .size = area.size});
  if (!page) co_return fail(page.error());
  doorbells_ = std::move(*page);
  co_return Result<void>{};
}

task::Task<Result<std::vector<std::byte>>> Client::call(
    Command command, std::vector<std::byte> payload,
    std::vector<const env::Descriptor*> descriptors, std::vector<env::Descriptor>* received,
    task::CancelToken token) {
  const Result<void> mine = co_await turn_.acquire(1, token);
  if (!mine) co_return fail(mine.error());
  const task::Units held(turn_, 1);
  const uint16_t id = next_id_++;
  OutgoingMessage message{.header = {.id = id,
                                     .command = static_cast<uint16_t>(command),
                                     .size = {},
                                     .flags = kTypeCommand,
                                     .error = {}},
                          .payload = std::move(payload),
                          .descriptors = std::move(descriptors)};
  const Result<void> written = co_await writer_.write(std::move(message), token);
  if (!written) co_return fail(written.error());
  const Result<void> read = co_await read_message(*stream_, reply_, token);
  if (!read) co_return fail(read.error());
  if (!reply_.is_reply() || reply_.header.id != id ||
      reply_.header.command != static_cast<uint16_t>(command)) {
    co_return fail(Errc::kCorrupt, "a reply to something else");
  }
  if ((reply_.header.flags & kError) != 0) co_return fail(error_of(reply_.header.error));
  if (received != nullptr) {
    for (env::Descriptor& each : reply_.descriptors()) received->push_back(std::move(each));
  }
  co_return std::move(reply_.payload);
}

namespace {

// A call whose reply says nothing but that it was done.
task::Task<Result<void>> done_by(task::Task<Result<std::vector<std::byte>>> call) {
  const Result<std::vector<std::byte>> answer = co_await call;
  if (!answer) co_return fail(answer.error());
  co_return Result<void>{};
}

}  // namespace

task::Task<Result<void>> Client::map(uint64_t address, const env::Descriptor& memory,
                                     env::SharedRange range, task::CancelToken token) {
  const DmaMap request{.argsz = uint32_t{sizeof(DmaMap)},
                       .flags = range.writable ? kDmaReadable | kDmaWritable : kDmaReadable,
                       .offset = range.offset,
                       .address = address,
                       .size = range.size};
  return done_by(call(Command::kDmaMap, payload_of(request), {&memory}, nullptr, token));
}

task::Task<Result<void>> Client::unmap(uint64_t address, uint64_t size, task::CancelToken token) {
  const DmaUnmap request{
      .argsz = uint32_t{sizeof(DmaUnmap)}, .flags = {}, .address = address, .size = size};
  return done_by(call(Command::kDmaUnmap, payload_of(request), {}, nullptr, token));
}

task::Task<Result<void>> Client::read(uint32_t region, uint64_t offset, MutableBytes into,
                                      task::CancelToken token) {
  const RegionAccess request{
      .offset = offset, .region = region, .count = static_cast<uint32_t>(into.size())};
  const Result<std::vector<std::byte>> answer =
      co_await call(Command::kRegionRead, payload_of(request), {}, nullptr, token);
  if (!answer) co_return fail(answer.error());
  if (answer->size() != sizeof(RegionAccess) + into.size()) {
    co_return fail(Errc::kCorrupt, "a REGION_READ of another size");
  }
  std::ranges::copy(Bytes(*answer).subspan(sizeof(RegionAccess)), into.begin());
  co_return Result<void>{};
}

task::Task<Result<void>> Client::write(uint32_t region, uint64_t offset, Bytes from,
                                       task::CancelToken token) {
  const RegionAccess request{
      .offset = offset, .region = region, .count = static_cast<uint32_t>(from.size())};
  std::vector<std::byte> payload = payload_of(request);
  payload.insert(payload.end(), from.begin(), from.end());
  return done_by(call(Command::kRegionWrite, std::move(payload), {}, nullptr, token));
}

task::Task<Result<std::unique_ptr<env::Signal>>> Client::listen(uint32_t index, uint32_t vector,
                                                                task::CancelToken token) {
  const Result<env::Descriptor> descriptor = sharing_.make_signal();
  if (!descriptor) co_return fail(descriptor.error());
  const IrqSet request{.argsz = uint32_t{sizeof(IrqSet)},
                       .flags = kIrqDataEventfd | kIrqActionTrigger,
                       .index = index,
                       .start = vector,
                       .count = 1u};
  const Result<std::vector<std::byte>> answer =
      co_await call(Command::kSetIrqs, payload_of(request), {&*descriptor}, nullptr, token);
  if (!answer) co_return fail(answer.error());
  Result<std::unique_ptr<env::Signal>> signal = sharing_.open_signal(*descriptor);
  co_return signal;
}

task::Task<Result<void>> Client::set_irq(uint32_t index, uint32_t vector, uint32_t action,
                                         task::CancelToken token) {
  const IrqSet request{.argsz = uint32_t{sizeof(IrqSet)},
                       .flags = kIrqDataNone | action,
                       .index = index,
                       .start = vector,
                       .count = 1u};
  return done_by(call(Command::kSetIrqs, payload_of(request), {}, nullptr, token));
}

task::Task<Result<void>> Client::reset(task::CancelToken token) {
  return done_by(call(Command::kReset, {}, {}, nullptr, token));
}

task::Task<Result<void>> Client::change_state(DeviceState to, task::CancelToken token) {
  const Feature header{.argsz = uint32_t{sizeof(Feature) + sizeof(FeatureState)},
                       .flags = kFeatureSet | static_cast<uint32_t>(FeatureId::kMigrationState)};
  const FeatureState state{.state = static_cast<uint32_t>(to), .data_fd = {}};
  return done_by(call(Command::kFeature, payload_of(header, state), {}, nullptr, token));
}

task::Task<Result<std::vector<std::byte>>> Client::read_state(task::CancelToken token) {
  constexpr uint32_t kPiece = 4096;
  std::vector<std::byte> state;
  while (state.size() <= kStateMax) {
    const MigrationData request{.argsz = uint32_t{sizeof(MigrationData)} + kPiece, .size = kPiece};
    const Result<std::vector<std::byte>> answer =
        co_await call(Command::kMigrationRead, payload_of(request), {}, nullptr, token);
    if (!answer) co_return fail(answer.error());
    if (answer->size() < sizeof(MigrationData)) co_return fail(Errc::kCorrupt, "a short state");
    state.insert(state.end(), answer->begin() + sizeof(MigrationData), answer->end());
    if (answer->size() < sizeof(MigrationData) + kPiece) co_return state;
  }
  co_return fail(Errc::kCorrupt, "a state without end");
}

task::Task<Result<void>> Client::write_state(Bytes state, task::CancelToken token) {
  constexpr size_t kPiece = 4096;
  while (!state.empty()) {
    const Bytes piece = state.first(std::min(kPiece, state.size()));
    state = state.subspan(piece.size());
    const MigrationData request{.argsz = uint32_t{sizeof(MigrationData)},
                                .size = static_cast<uint32_t>(piece.size())};
    std::vector<std::byte> payload = payload_of(request);
    payload.insert(payload.end(), piece.begin(), piece.end());
    const Result<std::vector<std::byte>> answer =
        co_await call(Command::kMigrationWrite, std::move(payload), {}, nullptr, token);
    if (!answer) co_return fail(answer.error());
  }
  co_return Result<void>{};
}

}  // namespace cairn::door::vfio_user
