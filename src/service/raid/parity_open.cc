// SPDX-License-Identifier: Apache-2.0
// Which legs parity opens with: judged by their labels, before anything is written.
#include <algorithm>
#include <utility>

#include "base/units.h"
#include "service/common/joint.h"
#include "service/raid/leg_opening.h"
#include "service/raid/leg_search.h"
#include "service/raid/parity.h"
#include "service/raid/parity_drive.h"

namespace cairn::drive {

namespace {

constexpr uint64_t kSliceBytes = 64_KiB;  // of a leg, in one update
constexpr uint64_t kLogBytesMax = 4_MiB;  // of a leg
constexpr uint64_t kLogShare = 32;        // of a leg's size, if that is less
constexpr uint64_t kLogSlicesMin = 4;     // that fit into a log at once

using ParityCandidates = Candidates<ParityLabel>;

uint64_t slice_of(uint32_t block_size) { return std::max<uint64_t>(kSliceBytes / block_size, 1); }

ParityLabel make_label(env::Env& env, const ParityCandidates& candidates,
                       const ParityOptions& options) {
  const uint32_t block_size = candidates[0].shape().block_size;
  uint64_t smallest = UINT64_MAX;
  for (const auto& one : candidates) smallest = std::min(smallest, one.shape().blocks);
  const uint64_t slice = slice_of(block_size);
  ParityLabel label{.block_size = block_size,
                    .chunk_blocks = static_cast<uint32_t>(options.chunk_bytes / block_size),
                    .legs = static_cast<uint8_t>(candidates.size() - options.spares),
                    .parity = static_cast<uint8_t>(options.parity)};
  label.id = {env.rng().next(), env.rng().next()};
  label.log_blocks = static_cast<uint32_t>(
      std::max(kLogSlicesMin * (slice + 1),
               std::min(smallest / kLogShare, std::max<uint64_t>(kLogBytesMax / block_size, 1))));
  const uint64_t offset = label.data_offset();
  label.rows = smallest > offset ? align_down(smallest - offset, label.chunk_blocks) : 0;
  return label;
}

// All are blank, or were when a crash stopped this very step.
Result<ParityFound> make_new(env::Env& env, ParityCandidates& candidates,
                             const ParityOptions& options) {
  for (const auto& one : candidates) {
    if (!one.is_there) return fail(Errc::kUnreachable, "new parity needs all its drives");
  }
  if (candidates.size() < options.spares + options.parity + 1) {
    return fail(Errc::kInvalid,
                "parity has one leg more than parity=N, or more, besides its spares");
  }
  const uint32_t block_size = candidates[0].shape().block_size;
  if (!is_aligned(options.chunk_bytes, block_size)) {
    return fail(Errc::kInvalid, "chunk is a multiple of the block size, which is",
                static_cast<int32_t>(block_size));
  }
  ParityFound found{.label = make_label(env, candidates, options), .is_new = true};
  if (found.label.rows == 0) {
    const uint64_t min = (found.label.data_offset() + found.label.chunk_blocks) * block_size;
    return fail(Errc::kInvalid, "a drive is too small for a leg of parity; the least, in KiB, is",
                static_cast<int32_t>(std::min<uint64_t>(min / 1_KiB, INT32_MAX)));
  }
  found.legs = new_legs(env, candidates, found.label.legs);
  found.state = {.epoch = 1, .missed = RegionSet(found.label.regions())};
  return found;
}

// Whether the options are those that it was made with.
Result<void> check_options(size_t drives, const ParityLabel& newest, const ParityOptions& options) {
  if (drives != newest.legs + options.spares) {
    return fail(Errc::kInvalid,
                "as many drives as parity was made with, and spares=N for those beyond; its legs",
                newest.legs);
  }
  if (options.parity != newest.parity) {
    return fail(Errc::kInvalid, "the drives were made with another parity=N; theirs is",
                newest.parity);
  }
  if (options.chunk_bytes != uint64_t{newest.chunk_blocks} * newest.block_size) {
    return fail(Errc::kInvalid, "the drives were made with another chunk; theirs is, in bytes",
                static_cast<int32_t>(newest.chunk_blocks * newest.block_size));
  }
  return {};
}

Result<ParityFound> assemble(ParityCandidates& candidates, const ParityLabel& newest,
                             const ParityOptions& options) {
  if (Result<void> fits = check_options(candidates.size(), newest, options); !fits) {
    return fail(fits.error());
  }
  ParityFound found{.label = newest};
  found.state.missed = RegionSet(newest.regions());
  const LegTerms terms{.degraded = options.degraded,
                       .moved = options.moved,
                       .good_min = static_cast<size_t>(newest.legs - newest.parity)};
  Result<Legs> legs = match_legs(candidates, newest, terms, found.state.missed);
  if (!legs) return fail(legs.error());
  found.legs = std::move(*legs);
  return found;
}

// The newest state of a leg. A block that a crash tore was never in force, so the other one counts;
// one that cannot be read may have been.
task::Task<Result<ParityState>> read_state(env::Env& env, const ParityLabel& label, Drive& drive,
                                           Buffer& memory) {
  Result<ParityState> newest = fail(Errc::kCorrupt, "there is no state of parity");
  for (uint64_t slot = 0; slot < 2; ++slot) {
    const Result<void> read =
        co_await drive.read(Lba(parity_state_block(slot)), memory.bytes(), env.stop_token());
    if (!read) co_return fail(read.error());
    Result<ParityState> state = decode_parity_state(label, memory.bytes());
    if (state && (!newest || state->sequence > newest->sequence)) newest = std::move(state);
  }
  co_return newest;
}

// Any good leg's epoch will do: entries of one exist only once it is durable on all good legs.
task::Task<Result<void>> read_states(env::Env& env, ParityFound& found, Buffer& memory) {
  for (const Leg& leg : found.legs) {
    if (leg.state != Leg::State::kGood) continue;
    const Result<ParityState> state = co_await read_state(env, found.label, *leg.drive, memory);
    if (env.stop_token().requested()) co_return fail(env.stop_token().error());
    if (!state) continue;
    const bool is_first = found.state.epoch == 0;
    found.states_differ |= !is_first && state->sequence != found.state.sequence;
    found.state.epoch = std::max(found.state.epoch, state->epoch);
    found.state.sequence = std::max(found.state.sequence, state->sequence);
    found.state.missed.add(state->missed);
  }
  if (found.state.epoch == 0) {
    co_return fail(Errc::kCorrupt, "no leg has a state of parity that can be read");
  }
  co_return Result<void>();
}

// That of all drives, if they can be legs.
Result<uint32_t> block_size_of(const std::vector<std::unique_ptr<Drive>>& below) {
  const Result<uint32_t> common = common_block_size(below);
  if (!common) return common;
  for (const std::unique_ptr<Drive>& drive : below) {
    if (drive == nullptr || drive->geometry().transfer_blocks >= slice_of(*common)) continue;
    return fail(Errc::kInvalid, "a drive takes less than 64K at a time; its blocks at a time are",
                static_cast<int32_t>(drive->geometry().transfer_blocks));
  }
  return common;
}

constexpr LegOpening<ParityLabel, ParityFound, ParityOptions> kOpening{
    .read = read_parity_label, .make_new = make_new, .assemble = assemble};

task::Task<Result<std::unique_ptr<Drive>>> open_parity(ServiceParts parts) {
  const ParityOptions options{.parity = parts.options.number("parity"),
                              .chunk_bytes = parts.options.number("chunk"),
                              .spares = parts.options.number("spares"),
                              .degraded = parts.options.is_yes("degraded"),
                              .moved = parts.options.is_yes("moved"),
                              .rate = parts.options.number("rate"),
                              .retry = retry_of(parts.options)};
  const Result<uint32_t> block_size = block_size_of(parts.below);
  if (!block_size) co_return fail(block_size.error());
  Result<Buffer> state = parts.env.buffers().allocate(*block_size);
  if (!state) co_return fail(Errc::kLimit, "a buffer for the state of parity");
  Result<ParityFound> found = co_await find_legs(parts, options, kOpening);
  if (!found) co_return fail(found.error());
  if (!found->is_new) {
    const Result<void> read = co_await read_states(parts.env, *found, *state);
    if (!read) {
      found->legs.give_back(parts.below);
      co_return fail(read.error());
    }
  }
  const ParityLabel newest = found->label;
  auto drive = std::make_unique<ParityDrive>(parts.env, options, std::move(*found), parts.late,
                                             slice_of(*block_size), std::move(*state));
  co_return co_await begin_or_close(std::move(drive), newest);
}

constexpr ServiceOption kOptions[] = {
    {.key = "parity",
     .default_value = "1",
     .what = "how many drives may be lost",
     .min = 1,
     .max = 4},
    {.key = "chunk",
     .kind = ServiceOption::Kind::kSize,
     .default_value = "64K",
     .what = "bytes on one drive before the next has its turn",
     .min = 512,
     .max = 64_MiB},
    {.key = "spares", .default_value = "0", .what = "how many of the last drives wait", .max = 22},
    kDegradedOption,
    kMovedOption,
    rate_option("bytes per second of copying and scrubbing; 0: any"),
    kRetryOption,
};

}  // namespace

task::Task<Result<ParityLabel>> read_parity_label(env::Env& env, Drive& drive,
                                                  task::CancelToken token) {
  const Result<std::optional<Label>> label = co_await read_label(env, drive, kParityLabel, token);
  if (!label) co_return fail(label.error());
  if (!label->has_value()) co_return fail(Errc::kNotFound, "a label of parity");
  co_return decode_parity_label(**label);
}

std::optional<ParityStatus> parity_status(const Drive& drive) {
  const auto* parity = dynamic_cast<const ParityDrive*>(&without_joint(drive));
  if (parity == nullptr) return std::nullopt;
  return parity->status();
}

constexpr Service kParity{.name = "parity",
                          .what = "data and parity on several drives (RAID 5, RAID 6 and beyond)",
                          .example = "parity({}, {}, {})",
                          .below_min = 2,
                          .below_max = kSymbolsMax,
                          .survives_loss = true,
                          .options = kOptions,
                          .open = open_parity};

}  // namespace cairn::drive
