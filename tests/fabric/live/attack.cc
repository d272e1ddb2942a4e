// SPDX-License-Identifier: Apache-2.0
#include "fabric/live/attack.h"

#include <fmt/format.h>

#include <memory>
#include <utility>
#include <vector>

#include "fabric/host/remote_drive.h"
#include "fabric/host/uri.h"
#include "fabric/live/mutant.h"
#include "stream/receiver.h"
#include "task/deadline.h"
#include "task/sync.h"
#include "task/when_all.h"
#include "testing/fabric/oracle.h"
#include "testing/target/box.h"
#include "testing/target/raw_host.h"

namespace cairn::live_fuzz {

using fabric_tests::kBlock;
using target_tests::RawHost;
using task::Task;

namespace {

constexpr uint32_t kDepth = 64;
constexpr uint16_t kQueueSize = 127;  // SQSIZE
// A box that answers nothing for so long has hung.
constexpr Duration kTimeout = 30_s;

// One connection: as many mutants outstanding as it may have.
class FuzzQueue {
 public:
  FuzzQueue(env::Env& env, RawHost& host, Mutants::Queue queue, uint64_t seed,
            const AttackOptions& options, AttackReport& report)
      : env_(env),
        stream_(*host.stream),
        receiver_(stream_, 64 * 1024),
        mutants_(seed, queue, host.style),
        options_(options),
        report_(report) {}

  Task<void> run() {
    Task<void> writer = write_loop();
    const Result<void> read = co_await read_loop();
    if (!read && read.error() == Errc::kTimedOut) report_.wrong = "the box answers no more";
    ended_ = true;
    room_.set();
    stream_.reset();
    co_await writer;
  }
  void stop() { stopping_.request(); }

 private:
  bool is_done() const { return report_.sent >= options_.commands || !report_.wrong.empty(); }

  Task<void> write_loop() {
    while (!ended_) {
      out_.clear();
      for (const nvme::R2t& r2t : std::exchange(asked_, {})) mutants_.add_data(out_, r2t);
      while (outstanding_ < kDepth && !is_done() && out_.size() < 256 * 1024) {
        mutants_.add_command(out_);
        ++outstanding_;
        ++report_.sent;
      }
      if (!out_.empty()) {
        const Result<void> written = co_await stream_.write(out_, stopping_.token());
        if (!written) co_return;
      }
      if (is_done() && asked_.empty() && outstanding_ <= kNeverAnswered) stopping_.request();
      const Result<void> room = co_await room_.wait(stopping_.token());
      if (!room) co_return;
      room_.reset();
    }
  }

  Task<Result<void>> read_loop() {
    for (;;) {
      task::Deadline deadline(env_, env_.now() + kTimeout, stopping_.token());
      Result<void> read = co_await receiver_.wait_for(sizeof(nvme::CommonHeader), deadline.token());
      if (!read) co_return idles(read);
      const auto common = load<nvme::CommonHeader>(receiver_.bytes());
      read = co_await receiver_.wait_for(common.header_length, deadline.token());
      if (!read) co_return read;
      const bool goes_on = take(common);
      read = co_await receiver_.skip(common.length, deadline.token());
      if (!read || !goes_on) co_return read;
    }
  }
  // Silence is no fault when nothing is to be answered.
  Result<void> idles(const Result<void>& read) const {
    if (read.error() == Errc::kTimedOut && outstanding_ <= kNeverAnswered) {
      return fail(Errc::kClosed, "idle");
    }
    return read;
  }

  bool take(const nvme::CommonHeader& common) {
    const bool has_answer =
        common.type == nvme::PduType::kCapsuleResp ||
        (common.type == nvme::PduType::kC2hData && (common.flags & nvme::PduFlags::kSuccess) != 0);
    if (has_answer) {
      --outstanding_;
      ++report_.answered;
    } else if (common.type == nvme::PduType::kR2t) {
      asked_.push_back(load<nvme::R2t>(receiver_.bytes()));
      ++report_.r2ts;
    } else if (common.type == nvme::PduType::kC2hTermReq) {
      ++report_.term_reqs;
      return false;
    }
    room_.set();
    return true;
  }

  // Event requests wait for ever, and so does the first of a pair for its second.
  static constexpr uint32_t kNeverAnswered = 5;

  env::Env& env_;
  env::Stream& stream_;
  stream::Receiver receiver_;
  Mutants mutants_;
  const AttackOptions& options_;
  AttackReport& report_;
  std::vector<std::byte> out_;
  std::vector<nvme::R2t> asked_;
  uint32_t outstanding_ = 0;
  task::Event room_;
  task::CancelSource stopping_;
  bool ended_ = false;
};

// Runs a queue, and ends the other one with it.
Task<void> run_queue(FuzzQueue& queue, FuzzQueue& other) {
  co_await queue.run();
  other.stop();
}

Task<void> assail(env::Env& env, const AttackOptions& options, AttackReport& report,
                  uint64_t seed) {
  Rng rng(seed);
  while (report.sent < options.commands && report.wrong.empty()) {
    const nvme::IcReqOptions style{.data_alignment = static_cast<uint8_t>(rng.below(32)),
                                   .header_digest = rng.bernoulli(0.5),
                                   .data_digest = rng.bernoulli(0.3)};
    RawHost admin(env);
    co_await admin.arrive(options.box, style, {.size = kQueueSize});
    RawHost io(env);
    co_await io.dial(options.box);
    co_await io.greet(style);
    const nvme::Cqe cqe =
        co_await io.connect({.id = 1, .size = kQueueSize, .controller = admin.controller_id});
    if (!cqe.get_status().ok()) report.wrong = "an I/O queue was refused";
    ++report.associations;
    FuzzQueue first(env, admin, Mutants::Queue::kAdmin, rng.next(), options, report);
    FuzzQueue second(env, io, Mutants::Queue::kIo, rng.next(), options, report);
    std::vector<Task<void>> both;
    both.push_back(run_queue(first, second));
    both.push_back(run_queue(second, first));
    co_await task::when_all(std::move(both));
  }
}

// Writes and checks a namespace of another subsystem until the attack is over.
Task<void> dwell(env::Env& env, const AttackOptions& options, AttackReport& report,
                 const bool& is_over) {
  fabric::HostOptions host;
  host.host_nqn = target_tests::kFriendNqn;
  const fabric::Uri uri{
      .paths = {options.box}, .nqn = target_tests::kClosedNqn, .nsid = 1, .options = host};
  Result<std::unique_ptr<fabric::RemoteDrive>> opened =
      co_await fabric::RemoteDrive::open(env, uri);
  if (!opened) {
    report.wrong = "the neighbour cannot open its drive: " + opened.error().text();
    co_return;
  }
  fabric::RemoteDrive& drive = **opened;
  std::vector<uint64_t> values(drive.geometry().blocks);
  std::vector<std::byte> block(kBlock);
  Rng rng(options.seed);
  const Result<void> cleared = co_await drive.write_zeroes(Lba(0), values.size());
  if (!cleared) report.wrong = "the neighbour cannot clear its drive: " + cleared.error().text();
  uint64_t left = values.size();  // after the attack, all of it once more
  while (left > 0 && report.wrong.empty()) {
    const bool last_look = is_over;
    const uint64_t lba = last_look ? --left : rng.below(values.size());
    if (!last_look && rng.bernoulli(0.5)) {
      values[lba] = rng.next() | 1;
      fabric_tests::fill_block(block, values[lba], lba);
      const Result<void> written = co_await drive.write(Lba(lba), block);
      if (!written) report.wrong = "a neighbour's write fails: " + written.error().text();
      ++report.neighbour_writes;
      continue;
    }
    const Result<void> got = co_await drive.read(Lba(lba), block);
    if (!got) report.wrong = "a neighbour's read fails: " + got.error().text();
    if (got && fabric_tests::value_of(block, lba, report.wrong) != values[lba]) {
      report.wrong = fmt::format("block {} of the neighbour has changed", lba);
    }
    ++report.neighbour_reads;
  }
  co_await drive.close();
}

Task<void> assail_all(env::Env& env, const AttackOptions& options, AttackReport& report,
                      bool& is_over) {
  std::vector<Task<void>> all;
  for (uint32_t i = 0; i < options.associations; ++i) {
    all.push_back(assail(env, options, report, mix64(options.seed + i)));
  }
  co_await task::when_all(std::move(all));
  is_over = true;
}

}  // namespace

Task<void> attack(env::Env& env, const AttackOptions& options, AttackReport& report) {
  bool is_over = false;
  std::vector<Task<void>> both;
  both.push_back(assail_all(env, options, report, is_over));
  both.push_back(dwell(env, options, report, is_over));
  co_await task::when_all(std::move(both));
}

}  // namespace cairn::live_fuzz
