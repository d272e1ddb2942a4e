// SPDX-License-Identifier: Apache-2.0
// Streams by the contract in env/stream.h.
#include "env/stream.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/units.h"
#include "env/io.h"
#include "task/deadline.h"
#include "task/when_all.h"
#include "world/sim/stream_testing.h"

namespace cairn::sim {
namespace {

using env::Env;
using env::Stream;
using task::Task;

TEST_F(StreamTest, ReadFillsWithWhatIsThere) {
  struct Seen {
    std::string text;
    size_t first = 0;
  } seen;
  both(
      seen,
      [](Env& env, Stream& stream, Seen& log) -> Task<void> {
        co_await pause(env, 1_ms);
        std::byte room[64];
        const Result<size_t> got = co_await stream.read(room);
        log.first = got.value();
        log.text = as_text(Bytes(room, *got));
      },
      [](Env& env, Stream& stream, Seen&) -> Task<void> {
        const Result<void> one = co_await stream.write(as_bytes("one "));
        const Bytes pieces[] = {as_bytes("two "), {}, as_bytes("three")};
        const Result<void> more = co_await stream.write(std::span(pieces));
        EXPECT_TRUE(one && more);
        co_await pause(env, 2_ms);
      });
  EXPECT_EQ(seen.text, "one two three");
}

// At any byte: the reader gets what is before it, the writer waits, nothing is lost.
TEST_F(StreamTest, ACutStopsBothSidesAtItsByte) {
  static const std::string kText = "0123456789";
  for (const bool to_server : {false, true}) {
    for (uint64_t position = 1; position <= kText.size(); ++position) {
      cluster_options_.network.cut = {.to_server = to_server, .position = position};
      struct Seen {
        std::string text;
        size_t first = 0;
      } seen;
      const Talk<Seen> read = [](Env&, Stream& stream, Seen& log) -> Task<void> {
        while (log.text.size() < kText.size()) {
          std::byte room[64];
          const Result<size_t> got = co_await stream.read(room);
          if (!got || *got == 0) break;
          if (log.first == 0) log.first = *got;
          log.text += as_text(Bytes(room, *got));
        }
      };
      const Talk<Seen> write = [](Env& env, Stream& stream, Seen&) -> Task<void> {
        const Result<void> written = co_await stream.write(as_bytes(kText));
        EXPECT_TRUE(written.has_value());
        co_await pause(env, 1_ms);
      };
      both(seen, to_server ? read : write, to_server ? write : read);
      EXPECT_EQ(seen.text, kText);
      EXPECT_EQ(seen.first, position);
    }
  }
}

TEST_F(StreamTest, ACutThatBreaksLetsWhatIsBeforeItArrive) {
  cluster_options_.network.cut = {.position = 3, .breaks = true};
  struct Seen {
    std::string text;
    Result<size_t> end = 0;
    Result<size_t> answer = 0;
  } seen;
  both(
      seen,
      [](Env&, Stream& stream, Seen& log) -> Task<void> {
        std::byte room[64];
        const Result<size_t> got = co_await stream.read(room);
        log.text = as_text(Bytes(room, got.value_or(0)));
        log.end = co_await stream.read(room);
      },
      [](Env&, Stream& stream, Seen& log) -> Task<void> {
        const Result<void> written = co_await stream.write(as_bytes("abcdef"));
        EXPECT_EQ(written.error(), Errc::kReset);
        std::byte room[64];
        log.answer = co_await stream.read(room);
      });
  EXPECT_EQ(seen.text, "abc");
  EXPECT_EQ(seen.end.error(), Errc::kReset);
  EXPECT_EQ(seen.answer.error(), Errc::kReset);
}

TEST_F(StreamTest, WriterIsAcceptedExactlyItsBufferAndThePeersThenWaits) {
  options_.send_buffer_size = 3000;
  options_.receive_buffer_size = 5000;
  struct State {
    size_t accepted = 0;
    size_t read = 0;
    size_t accepted_before_reading = 0;
  } state;
  both(
      state,
      [](Env& env, Stream& stream, State& log) -> Task<void> {
        co_await pause(env, 1_s);
        log.accepted_before_reading = log.accepted;
        std::vector<std::byte> room(1000);
        while (true) {
          const Result<size_t> got = co_await stream.read(room);
          EXPECT_TRUE(got.has_value());
          if (*got == 0) break;
          log.read += *got;
          co_await pause(env, 10_ms);
        }
      },
      [](Env&, Stream& stream, State& log) -> Task<void> {
        const std::byte one[1] = {};
        for (int i = 0; i < 20000; ++i) {
          const Result<void> written = co_await stream.write(one);
          EXPECT_TRUE(written.has_value());
          ++log.accepted;
        }
      });
  EXPECT_EQ(state.accepted_before_reading, 8000u);
  EXPECT_EQ(state.read, 20000u);
}

TEST_F(StreamTest, CancelledReadLosesNoBytes) {
  struct State {
    int cancelled = 0;
    std::string text;
  } state;
  both(
      state,
      [](Env& env, Stream& stream, State& log) -> Task<void> {
        while (log.text.size() < 100) {
          std::byte room[7];
          task::Deadline deadline(env, env.now() + 700_us);
          const Result<size_t> got = co_await stream.read(room, deadline.token());
          if (got) {
            log.text += as_text(Bytes(room, *got));
          } else {
            EXPECT_TRUE(got.error() == Errc::kTimedOut);
            ++log.cancelled;
          }
        }
      },
      [](Env& env, Stream& stream, State&) -> Task<void> {
        for (int i = 0; i < 10; ++i) {
          co_await pause(env, 5_ms);
          const std::string text(10, static_cast<char>('a' + i));
          const Result<void> written = co_await stream.write(as_bytes(text));
          EXPECT_TRUE(written.has_value());
        }
      });
  std::string expected;
  for (int i = 0; i < 10; ++i) expected += std::string(10, static_cast<char>('a' + i));
  EXPECT_EQ(state.text, expected);
  EXPECT_GT(state.cancelled, 10);
}

TEST_F(StreamTest, AfterACancelledWriteLaterOnesFail) {
  options_.send_buffer_size = 1000;
  options_.receive_buffer_size = 1000;
  int unused = 0;
  both(
      unused, [](Env& env, Stream&, int&) -> Task<void> { co_await pause(env, 100_ms); },
      [](Env& env, Stream& stream, int&) -> Task<void> {
        const std::vector<std::byte> large(10000);
        {
          task::Deadline deadline(env, env.now() + 10_ms);
          const Result<void> first = co_await stream.write(large, deadline.token());
          EXPECT_TRUE(first.error() == Errc::kTimedOut);
        }
        const Result<void> second = co_await stream.write(large);
        EXPECT_FALSE(second.has_value());
      });
}

TEST_F(StreamTest, HalfCloseLetsTheOtherDirectionGoOn) {
  std::string answer;
  both(
      answer,
      [](Env&, Stream& stream, std::string&) -> Task<void> {
        std::string text;
        while (true) {
          const Result<env::Chunk> chunk = co_await stream.receive();
          EXPECT_TRUE(chunk.has_value());
          if (chunk->empty()) break;
          text += as_text(chunk->bytes());
        }
        const Result<void> written = co_await stream.write(as_bytes(text + "!"));
        EXPECT_TRUE(written.has_value());
      },
      [](Env&, Stream& stream, std::string& log) -> Task<void> {
        const Result<void> written = co_await stream.write(as_bytes("question"));
        EXPECT_TRUE(written && stream.finish());
        const Result<void> late = co_await stream.write(as_bytes("late"));
        EXPECT_TRUE(late.error() == Errc::kClosed);
        std::byte room[9];
        const Result<void> got = co_await env::read_exactly(stream, room);
        EXPECT_TRUE(got.has_value());
        log = as_text(room);
        const Result<size_t> end = co_await stream.read(room);
        EXPECT_EQ(end.value(), 0u);
        const Result<size_t> again = co_await stream.read(room);
        EXPECT_EQ(again.value(), 0u) << "the end stays the end";
      });
  EXPECT_EQ(answer, "question!");
}

Task<void> expect_read_reset(Stream& stream) {
  std::byte room[8];
  const Result<size_t> got = co_await stream.read(room);
  EXPECT_FALSE(got.has_value());
  if (!got) EXPECT_TRUE(got.error() == Errc::kReset);
}
Task<void> expect_write_reset(Stream& stream, size_t size) {
  const std::vector<std::byte> large(size);
  const Result<void> written = co_await stream.write(large);
  EXPECT_FALSE(written.has_value());
  if (!written) EXPECT_TRUE(written.error() == Errc::kReset);
}

TEST_F(StreamTest, ResetEndsBothDirectionsOnBothSides) {
  int unused = 0;
  both(
      unused,
      [](Env&, Stream& stream, int&) -> Task<void> {
        co_await task::when_all(expect_read_reset(stream), expect_write_reset(stream, 10 << 20));
        EXPECT_TRUE(stream.finish().error() == Errc::kReset);
      },
      [](Env& env, Stream& stream, int&) -> Task<void> {
        co_await pause(env, 5_ms);
        stream.reset();
        co_await expect_read_reset(stream);  // what had arrived is gone
        co_await expect_write_reset(stream, 1);
        EXPECT_TRUE(stream.finish().error() == Errc::kReset);
      });
}

TEST_F(StreamTest, ResetCompletesOperationsInFlight) {
  int unused = 0;
  both(
      unused, [](Env& env, Stream&, int&) -> Task<void> { co_await pause(env, 1_s); },
      [](Env& env, Stream& stream, int&) -> Task<void> {
        Task<void> reading = expect_read_reset(stream);
        Task<void> writing = expect_write_reset(stream, 10 << 20);
        co_await pause(env, 5_ms);
        EXPECT_FALSE(reading.is_done() || writing.is_done());
        stream.reset();
        co_await reading;
        co_await writing;
      });
}

TEST_F(StreamTest, DestructionDeliversWhatWasWritten) {
  size_t total = 0;
  both(
      total,
      [](Env& env, Stream& stream, size_t& sum) -> Task<void> {
        co_await pause(env, 100_ms);
        std::vector<std::byte> room(4096);
        while (true) {
          const Result<size_t> got = co_await stream.read(room);
          EXPECT_TRUE(got.has_value());
          if (!got || *got == 0) break;
          sum += *got;
        }
      },
      [](Env&, Stream& stream, size_t&) -> Task<void> {
        const std::vector<std::byte> much(400 << 10);
        const Result<void> written = co_await stream.write(much);
        EXPECT_TRUE(written.has_value());
      });
  EXPECT_EQ(total, size_t{400 << 10});
}

TEST_F(StreamTest, WritingToAPeerThatIsGoneEndsInReset) {
  int unused = 0;
  both(
      unused, [](Env&, Stream&, int&) -> Task<void> { co_return; },
      [](Env& env, Stream& stream, int&) -> Task<void> {
        co_await pause(env, 1_ms);
        const Result<void> first = co_await stream.write(as_bytes("anybody?"));
        EXPECT_TRUE(first.has_value()) << "accepted for sending";
        co_await pause(env, 1_ms);
        co_await expect_write_reset(stream, 1);
      });
}

TEST_F(StreamTest, HeldChunksSlowTheSenderDown) {
  options_.send_buffer_size = 4096;
  options_.receive_buffer_size = 16384;
  struct State {
    size_t accepted = 0;
    size_t received = 0;
  } state;
  both(
      state,
      [](Env& env, Stream& stream, State& log) -> Task<void> {
        std::vector<env::Chunk> held;
        for (int i = 0; i < 100; ++i) {
          task::Deadline deadline(env, env.now() + 10_ms);
          Result<env::Chunk> chunk = co_await stream.receive(deadline.token());
          if (!chunk) break;
          log.received += chunk->bytes().size();
          held.push_back(std::move(*chunk));
        }
        EXPECT_EQ(log.received, 16384u) << "not more than its buffer, however long it waits";
        std::swap(held.front(), held.back());  // given back in any order
        held.clear();
        while (log.received < 100'000) {
          const Result<env::Chunk> chunk = co_await stream.receive();
          EXPECT_TRUE(chunk.has_value());
          if (!chunk) break;
          log.received += chunk->bytes().size();
        }
      },
      [](Env&, Stream& stream, State&) -> Task<void> {
        const std::vector<std::byte> much(100'000);
        const Result<void> written = co_await stream.write(much);
        EXPECT_TRUE(written.has_value());
      });
  EXPECT_EQ(state.received, 100'000u);
}

TEST_F(StreamTest, BytesArriveInOrderHoweverTheyAreCut) {
  cluster_options_.network.faults = {.segment = 1.0, .delay = 0.2, .clog = 0.01};
  struct State {
    uint64_t sent = 0;
    uint64_t received = 0;
    bool is_in_order = true;
  } state;
  both(
      state,
      [](Env&, Stream& stream, State& log) -> Task<void> {
        std::vector<std::byte> room(3333);
        while (true) {
          const Result<size_t> got = co_await stream.read(room);
          if (!got || *got == 0) break;
          for (size_t i = 0; i < *got; ++i) {
            const auto expected = static_cast<std::byte>((log.received + i) * 2654435761U >> 13);
            log.is_in_order = log.is_in_order && room[i] == expected;
          }
          log.received += *got;
        }
      },
      [](Env& env, Stream& stream, State& log) -> Task<void> {
        for (int round = 0; round < 100; ++round) {
          std::vector<std::byte> part(env.rng().between(1, 5000));
          for (std::byte& byte : part) {
            byte = static_cast<std::byte>(log.sent++ * 2654435761U >> 13);
          }
          const Result<void> written = co_await stream.write(part);
          EXPECT_TRUE(written.has_value());
        }
      });
  EXPECT_TRUE(state.is_in_order);
  EXPECT_EQ(state.received, state.sent);
}

TEST_F(StreamTest, BitFlipsAreOffUnlessAskedFor) {
  for (const double probability : {0.0, 0.05}) {
    cluster_options_.network.faults = {.bit_flip = probability};
    size_t wrong = 0;
    both(
        wrong,
        [](Env&, Stream& stream, size_t& count) -> Task<void> {
          std::vector<std::byte> room(4096);
          while (true) {
            const Result<size_t> got = co_await stream.read(room);
            if (!got || *got == 0) break;
            for (size_t i = 0; i < *got; ++i) count += room[i] != std::byte{0};
          }
        },
        [](Env&, Stream& stream, size_t&) -> Task<void> {
          const std::vector<std::byte> zeroes(1000);
          for (int i = 0; i < 500; ++i) {
            const Result<void> written = co_await stream.write(zeroes);
            EXPECT_TRUE(written.has_value());
          }
        });
    EXPECT_EQ(wrong > 0, probability > 0) << wrong;
  }
}

TEST_F(StreamTest, LoopbackInsideANodeWorks) {
  is_loopback_ = true;
  std::string text;
  both(
      text,
      [](Env&, Stream& stream, std::string& log) -> Task<void> {
        std::byte room[5];
        const Result<void> got = co_await env::read_exactly(stream, room);
        EXPECT_TRUE(got.has_value());
        log = as_text(room);
      },
      [](Env&, Stream& stream, std::string&) -> Task<void> {
        const Result<void> written = co_await stream.write(as_bytes("hello"));
        EXPECT_TRUE(written.has_value());
      });
  EXPECT_EQ(text, "hello");
}

Task<void> read_once(Stream& stream) {
  std::byte room[8];
  const Result<size_t> got = co_await stream.read(room);
  EXPECT_FALSE(got.has_value());
}

TEST_F(StreamTest, TwoReadsAtOnceAreABug) {
  int unused = 0;
  EXPECT_DEATH(both(
                   unused, [](Env& env, Stream&, int&) -> Task<void> { co_await pause(env, 1_s); },
                   [](Env&, Stream& stream, int&) -> Task<void> {
                     co_await task::when_all(read_once(stream), read_once(stream));
                   }),
               "one read or receive at a time");
}

}  // namespace
}  // namespace cairn::sim
