// SPDX-License-Identifier: Apache-2.0
// Clients that send what no client should. A message that makes no sense is refused and the next
// one is served; what is no message ends the connection, and the next client is served.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>

#include "door/vfio_user/rig.h"

namespace cairn::vfio_user_tests {
namespace {

WORLD_TEST_SUITE(VfioUserHostile);

struct Sample {
  Command command;
  std::vector<std::byte> payload;
};

// A message of each kind as it should be.
std::vector<Sample> samples() {
  RegionWriteOne one{.offset = uint64_t{0x100}, .region = uint32_t{kBar0}, .count = 8u};
  const Feature set_state{.argsz = 16u,
                          .flags = kFeatureSet | static_cast<uint32_t>(FeatureId::kMigrationState)};
  const Feature start{.argsz = 40u,
                      .flags = kFeatureSet | static_cast<uint32_t>(FeatureId::kLoggingStart)};
  const Feature report{.argsz = 4096u,
                       .flags = kFeatureGet | static_cast<uint32_t>(FeatureId::kLoggingReport)};
  const DirtyBitmap bitmap{.page_size = 4096u, .size = 32u};
  return {
      {Command::kVersion, propose_version()},
      {Command::kDmaMap,
       payload_of(DmaMap{.argsz = 32u, .flags = 3u, .address = 0x8000u, .size = 0x1000u})},
      {Command::kDmaUnmap, payload_of(DmaUnmap{.argsz = 24u, .address = 0x8000u, .size = 0x1000u})},
      {Command::kDmaUnmap,
       payload_of(
           DmaUnmap{.argsz = 24u, .flags = kUnmapGetDirty, .address = 0x8000u, .size = 0x1000u},
           bitmap)},
      {Command::kGetInfo, payload_of(DeviceInfo{.argsz = 16u})},
      {Command::kGetRegionInfo, payload_of(RegionInfo{.argsz = 64u})},
      {Command::kGetRegionIoFds, payload_of(RegionIoFds{.argsz = 16u})},
      {Command::kGetIrqInfo, payload_of(IrqInfo{.argsz = 16u, .index = 2u})},
      {Command::kSetIrqs, payload_of(IrqSet{.argsz = 20u,
                                            .flags = kIrqDataNone | kIrqActionMask,
                                            .index = 2u,
                                            .start = 3u,
                                            .count = 4u})},
      {Command::kSetIrqs, payload_of(IrqSet{.argsz = 24u,
                                            .flags = kIrqDataBool | kIrqActionUnmask,
                                            .index = 2u,
                                            .start = 3u,
                                            .count = 4u},
                                     Le32(0x0001'0001u))},
      {Command::kSetIrqs, payload_of(IrqSet{.argsz = 20u,
                                            .flags = kIrqDataEventfd | kIrqActionTrigger,
                                            .index = 2u,
                                            .start = 3u,
                                            .count = 4u})},
      {Command::kRegionRead, payload_of(RegionAccess{.offset = uint64_t{0x14}, .count = 4u})},
      {Command::kRegionWrite,
       payload_of(RegionAccess{.offset = uint64_t{0x14}, .count = 4u}, Le32(1u))},
      {Command::kRegionWrite,
       payload_of(RegionAccess{.offset = uint64_t{0x1000}, .count = 4u}, Le32(1u))},
      {Command::kRegionWrite,
       payload_of(RegionAccess{.region = uint32_t{kBar4}, .count = 4u}, Le32(1u))},
      {Command::kRegionWrite,
       payload_of(RegionAccess{.offset = uint64_t{4}, .region = uint32_t{kConfig}, .count = 4u},
                  Le32(1u))},
      {Command::kRegionWriteMulti, payload_of(Le64(uint64_t{2}), one, one)},
      {Command::kDmaRead, payload_of(DmaAccess{.address = kGuestBase, .count = uint64_t{4}})},
      {Command::kReset, {}},
      {Command::kDirtyPages, payload_of(DirtyPages{.argsz = 8u, .flags = kDirtyStart})},
      {Command::kDirtyPages,
       payload_of(DirtyPages{.argsz = 4096u, .flags = kDirtyGetBitmap},
                  DirtyRange{.address = kGuestBase, .size = kGuestSize, .bitmap = bitmap})},
      {Command::kFeature, payload_of(set_state, FeatureState{.state = 3u})},
      {Command::kFeature, payload_of(start, FeatureLoggingStart{.page_size = 4096u, .ranges = 1u},
                                     LoggingRange{.address = kGuestBase, .length = kGuestSize})},
      {Command::kFeature, payload_of(report, FeatureLoggingReport{.address = kGuestBase,
                                                                  .length = kGuestSize,
                                                                  .page_size = 4096u})},
      {Command::kMigrationRead, payload_of(MigrationData{.argsz = 4096u, .size = 64u})},
      {Command::kMigrationWrite, payload_of(MigrationData{.argsz = 8u, .size = 4u}, Le32(7u))},
      {Command{0}, {}},
      {Command{19}, std::vector<std::byte>(64)},
      {Command{0xffff}, std::vector<std::byte>(64)},
  };
}

// The server still answers, whatever the last message was.
Task<void> expect_alive(Client& client) {
  Le32 ids;
  co_await sure(client.read(kConfig, 0, mutable_bytes_of(ids)));
  EXPECT_EQ(ids, 0xca10'1b36u);
}

Task<void> send_variants(Client& client, const Sample& sample) {
  // Any answer will do.
  const Result<std::vector<std::byte>> whole = co_await client.call(sample.command, sample.payload);
  for (size_t size = 0; size < sample.payload.size(); ++size) {
    std::vector<std::byte> cut(sample.payload.begin(),
                               sample.payload.begin() + static_cast<ptrdiff_t>(size));
    const Result<std::vector<std::byte>> answer =
        co_await client.call(sample.command, std::move(cut));
    EXPECT_TRUE(answer || answer.error().detail() != 0) << size;
  }
  const std::byte values[] = {std::byte{0}, std::byte{1}, std::byte{0x7f}, std::byte{0x80},
                              std::byte{0xff}};
  for (size_t width : {1, 4, 8}) {
    for (size_t at = 0; at + width <= sample.payload.size(); at += width) {
      for (const std::byte value : values) {
        std::vector<std::byte> changed = sample.payload;
        std::fill_n(changed.begin() + static_cast<ptrdiff_t>(at), width, value);
        const Result<std::vector<std::byte>> answer =
            co_await client.call(sample.command, std::move(changed));
        EXPECT_TRUE(answer || answer.error().detail() != 0) << at;
      }
    }
  }
  co_await expect_alive(client);
}

WORLD_TEST(VfioUserHostile, EveryFieldOfEveryMessageMayBeAnything) {
  Rig rig(env);
  rig.open(scene);
  {
    Guest guest = co_await rig.guest();
    for (const Sample& sample : samples()) co_await send_variants(*guest.client, sample);
    // Afterwards it is a device as any other.
    co_await sure(guest.client->reset());
    co_await sure(guest.client->call(Command::kDmaUnmap,
                                     payload_of(DmaUnmap{.argsz = 24u, .flags = kUnmapAll})));
    co_await sure(guest.client->map(kGuestBase, guest.memory_descriptor, {.size = kGuestSize}));
    co_await sure(enable(*guest.client));
    const auto signal = co_await sure(guest.client->listen(kMsix, 0));
    guest.rings = 0;
    co_await sure(guest.copy(4096, 8192, 64));
    co_await sure_of(*signal);
  }
  co_await rig.close();
}

Task<Result<void>> write_all(env::LocalStream& stream, Header header,
                             std::vector<const env::Descriptor*> descriptors) {
  Result<void> written = co_await stream.write(bytes_of(header), descriptors);
  co_return written;
}

// Says hello, then something that is no message, and waits until the server has hung up.
Task<void> expect_hangup(Rig& rig, Header header, std::vector<const env::Descriptor*> descriptors) {
  while (true) {
    Result<std::unique_ptr<Client>> client = co_await Client::connect(rig.env, rig.address);
    if (!client) {
      EXPECT_EQ(outcome(client), "unreachable");  // the one before is being put away
      continue;
    }
    env::LocalStream& stream = (*client)->stream();
    co_await sure(write_all(stream, header, std::move(descriptors)));
    std::array<std::byte, 64> room{};
    std::array<env::Descriptor, 1> none;
    const Result<env::Received> end = co_await stream.read(room, none, rig.env.stop_token());
    EXPECT_TRUE(!end || end->bytes == 0);
    co_return;
  }
}

WORLD_TEST(VfioUserHostile, WhatIsNoMessageEndsTheConnection) {
  Rig rig(env);
  rig.open(scene);
  const Header fine{.command = static_cast<uint16_t>(Command::kReset), .size = 16u};
  std::vector<Header> bad;
  for (const uint32_t size : {0u, 1u, 15u, kMessageMax + 1, 0x7fff'ffffu, ~0u}) {
    bad.push_back(fine);
    bad.back().size = size;
  }
  for (const uint32_t flags : {1u, 0x21u, 2u, 3u, 0xfu}) {
    bad.push_back(fine);
    bad.back().flags = flags;
  }
  for (const Header& header : bad) co_await expect_hangup(rig, header, {});
  EXPECT_GE(rig.log.size(), 2u) << "sizes and flags, each once a second";
  EXPECT_LE(rig.log.size(), bad.size());
  // More descriptors than were agreed on.
  const env::Descriptor signal = must(env::sharing(env)->make_signal());
  co_await expect_hangup(rig, fine, std::vector(kDescriptorsMax + 1, &signal));
  for (const std::string& line : rig.log) {
    EXPECT_NE(line.find("was turned away: "), std::string::npos) << line;
  }
  co_await rig.close();
}

std::vector<std::byte> message_of(Command command, const std::vector<std::byte>& payload) {
  const Header header{.command = static_cast<uint16_t>(command),
                      .size = static_cast<uint32_t>(sizeof(Header) + payload.size())};
  std::vector<std::byte> message = payload_of(header);
  message.insert(message.end(), payload.begin(), payload.end());
  return message;
}

// An order that takes a day, and a stop that waits for it.
std::vector<std::byte> stop_under_an_order(Guest& guest) {
  store(guest.at(0, sizeof(Order)), Order{.from = kGuestBase + 4096,
                                          .to = kGuestBase + 8192,
                                          .length = 512u,
                                          .vector = {},
                                          .delay_ns = static_cast<uint64_t>(kDelayMax.ns)});
  const Feature set{.argsz = 16u,
                    .flags = kFeatureSet | static_cast<uint32_t>(FeatureId::kMigrationState)};
  const FeatureState stop{.state = static_cast<uint32_t>(DeviceState::kStop), .data_fd = {}};
  std::vector<std::byte> all = message_of(
      Command::kRegionWrite,
      payload_of(RegionAccess{.offset = kDoorbellsAt, .region = uint32_t{kBar0}, .count = 4u},
                 Le32(1u)));
  const std::vector<std::byte> second = message_of(Command::kFeature, payload_of(set, stop));
  all.insert(all.end(), second.begin(), second.end());
  return all;
}

// Both, and what is no message, all in one write: nobody would end that wait.
WORLD_TEST(VfioUserHostile, NothingIsBegunOnceTheEndHasCome) {
  Rig rig(env);
  rig.open(scene);
  {
    Guest guest = co_await rig.guest();
    std::vector<std::byte> all = stop_under_an_order(guest);
    const std::vector<std::byte> none = payload_of(Header{.size = 0u});
    all.insert(all.end(), none.begin(), none.end());
    const Result<void> sent = co_await guest.client->stream().write(all);
    must(sent);
    std::array<std::byte, 4096> answers{};
    Result<env::Received> heard;
    do {
      heard = co_await guest.client->stream().read(answers, {});
    } while (heard && heard->bytes > 0);
  }
  Guest next = co_await rig.guest();
  co_await expect_alive(*next.client);
  next.client.reset();
  co_await rig.close();
}

// More messages behind the stop than the server reads ahead.
WORLD_TEST(VfioUserHostile, AClientThatLeavesBehindALongQueueIsNoticed) {
  Rig rig(env);
  rig.open(scene);
  for (const int others : {6, 7, 8, 9, 100}) {
    {
      Guest guest = co_await rig.guest();
      std::vector<std::byte> all = stop_under_an_order(guest);
      for (int i = 0; i < others; ++i) {
        const std::vector<std::byte> more = message_of(Command::kReset, {});
        all.insert(all.end(), more.begin(), more.end());
      }
      const Result<void> sent = co_await guest.client->stream().write(all);
      must(sent);
      // The order is given, and the stop comes next.
      Message answer;
      const Result<void> heard = co_await read_message(guest.client->stream(), answer, {});
      must(heard);
    }
    Guest next = co_await rig.guest();
    co_await expect_alive(*next.client);
  }
  co_await rig.close();
}

WORLD_TEST(VfioUserHostile, TheFirstMessageIsTheVersion) {
  Rig rig(env);
  rig.open(scene);
  for (const Sample& sample : samples()) {
    if (sample.command == Command::kVersion) continue;
    env::Sharing& sharing = *env::sharing(env);
    Result<env::Connection> connection = co_await env.connect(rig.address);
    const auto stream = must(sharing.open_local(must(std::move(connection))));
    MessageWriter writer(*stream);
    co_await sure(writer.write(
        {.header = {.command = static_cast<uint16_t>(sample.command)}, .payload = sample.payload}));
    Message reply;
    co_await sure(read_message(*stream, reply));
    EXPECT_EQ(reply.header.flags, kTypeReply | kError);
    EXPECT_TRUE(reply.header.error == uint32_t{EINVAL} || reply.header.error == uint32_t{EBUSY});
    const Result<void> end = co_await read_message(*stream, reply);
    EXPECT_FALSE(end.has_value());
  }
  co_await rig.close();
}

WORLD_TEST(VfioUserHostile, DescriptorsThatAreSomethingElseAreRefused) {
  Rig rig(env);
  rig.open(scene);
  {
    Guest guest = co_await rig.guest();
    Client& client = *guest.client;
    const env::Descriptor signal = must(client.sharing().make_signal());
    const Result<void> mapped = co_await client.map(0x8000, signal, {.size = 4096});
    EXPECT_EQ(outcome(mapped), "invalid");
    const IrqSet set{.argsz = 20u,
                     .flags = kIrqDataEventfd | kIrqActionTrigger,
                     .index = uint32_t{kMsix},
                     .start = 0u,
                     .count = 2u};
    Result<std::vector<std::byte>> answer = co_await client.call(
        Command::kSetIrqs, payload_of(set), {&signal, &guest.memory_descriptor});
    EXPECT_EQ(outcome(answer), "invalid");
    answer = co_await client.call(Command::kSetIrqs, payload_of(set), {&signal});
    EXPECT_EQ(outcome(answer), "invalid");
    answer = co_await client.call(Command::kSetIrqs, payload_of(set), {&signal, &signal, &signal});
    EXPECT_EQ(outcome(answer), "invalid");
    answer = co_await client.call(
        Command::kDmaMap,
        payload_of(DmaMap{.argsz = 32u, .flags = 3u, .address = 0x8000u, .size = 4096u}),
        {&guest.memory_descriptor, &guest.memory_descriptor});
    EXPECT_EQ(outcome(answer), "invalid");
    co_await expect_alive(client);
  }
  co_await rig.close();
}

WORLD_TEST(VfioUserHostile, SilenceIsHeardOutForSoLong) {
  Rig rig(env, Pace::kAdaptive, 5_ms);
  rig.open(scene);
  {
    env::Sharing& sharing = *env::sharing(env);
    Result<env::Connection> connection = co_await env.connect(rig.address);
    const auto stream = must(sharing.open_local(must(std::move(connection))));
    Message reply;
    const Result<void> end = co_await read_message(*stream, reply);
    EXPECT_FALSE(end.has_value());
  }
  {
    Guest guest = co_await rig.guest();
    co_await expect_alive(*guest.client);
  }
  co_await rig.close();
}

}  // namespace
}  // namespace cairn::vfio_user_tests
