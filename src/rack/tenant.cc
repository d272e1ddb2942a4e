// SPDX-License-Identifier: Apache-2.0
#include "rack/tenant.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "base/error_text.h"
#include "base/uuid.h"
#include "fabric/host/uri.h"
#include "rack/billboard.h"
#include "rack/pledge.h"
#include "rack/store_text.h"

namespace cairn::rack {

namespace {

constexpr int kAskTries = 2;
constexpr int kChangeTries = 5;

// An error after which the box may or may not have heard.
bool is_lost(const Error& error) {
  return error == Errc::kReset || error == Errc::kTimedOut || error == Errc::kClosed;
}

task::Task<Result<uint32_t>> ask_again(Peers& peers, Endpoint place, SpaceRequest request,
                                       task::CancelToken token) {
  Result<uint32_t> answer = 0u;
  for (int tries = 0; tries < kAskTries; ++tries) {
    answer = co_await peers.ask(place, request, token);
    if (answer || !is_lost(answer.error()) || token.requested()) break;
  }
  co_return answer;
}

ContractId draw_id(env::Env& env) {
  ContractId id{};
  env.fill_secret(std::as_writable_bytes(std::span(id)));
  id[6] = static_cast<uint8_t>((id[6] & 0x0f) | 0x40);  // RFC 9562, 5.4: version 4
  id[8] = static_cast<uint8_t>((id[8] & 0x3f) | 0x80);
  return id;
}

std::string box_text(const Leg& leg) { return fmt::format("{}/{}", leg.box, leg.shelf); }

// Making one drive.
class Making {
 public:
  Making(env::Env& env, Peers& peers, DriveWish wish, task::CancelToken token)
      : env_(env), peers_(peers), wish_(std::move(wish)), token_(token) {}

  // All legs, reserved; else none is.
  task::Task<Outcome<std::vector<Leg>>> gather(std::vector<Offer> offers) {
    for (;;) {
      const auto chosen = choose(offers, wish_.wish);
      if (!chosen) {
        co_await give_back();
        co_return std::unexpected(with_notes(chosen.error()));
      }
      const Amount amount = leg_amount(wish_.wish, chosen->size());
      std::vector<Offer> wanted;
      for (const size_t each : *chosen) wanted.push_back(offers[each]);
      co_await give_back_unless(wanted, amount);
      const std::optional<Offer> refused = co_await reserve_missing(wanted, amount);
      if (!refused) co_return in_order(wanted);
      std::erase_if(offers, [&refused](const Offer& offer) { return same(offer, *refused); });
    }
  }

  task::Task<void> give_back() { co_await give_back_unless({}, {}); }

 private:
  static bool same(const Offer& a, const Offer& b) { return a.box == b.box && a.shelf == b.shelf; }
  static bool is_from(const Leg& leg, const Offer& offer) {
    return leg.box == offer.box && leg.shelf == offer.shelf;
  }

  // Legs of an earlier choice that are not part of this one.
  task::Task<void> give_back_unless(std::vector<Offer> wanted, Amount amount) {
    std::vector<Leg> kept;
    std::vector<Leg> left;
    for (Leg& leg : legs_) {
      const bool is_wanted =
          leg.amount == amount &&
          std::ranges::any_of(wanted, [&leg](const Offer& offer) { return is_from(leg, offer); });
      (is_wanted ? kept : left).push_back(std::move(leg));
    }
    legs_ = std::move(kept);
    for (const Leg& leg : left) {
      // A box that does not hear it gives the space back at the end of the term.
      [[maybe_unused]] const Result<uint32_t> released = co_await ask_again(
          peers_, leg.place, {.verb = SpaceRequest::Verb::kForceRelease, .id = leg.id}, token_);
    }
  }

  // The first offer whose box did not keep to it; none: all are reserved.
  task::Task<std::optional<Offer>> reserve_missing(std::vector<Offer> wanted, Amount amount) {
    for (Offer& offer : wanted) {
      const auto has = [&offer](const Leg& leg) { return is_from(leg, offer); };
      if (std::ranges::any_of(legs_, has)) continue;
      Leg leg{.id = draw_id(env_),
              .box = offer.box,
              .shelf = offer.shelf,
              .place = offer.place,
              .amount = amount};
      const SpaceRequest request{.verb = SpaceRequest::Verb::kReserve,
                                 .id = leg.id,
                                 .drive = wish_.name,
                                 .shelf = offer.shelf,
                                 .amount = amount};
      const Result<uint32_t> nsid = co_await ask_again(peers_, offer.place, request, token_);
      if (!nsid || *nsid == 0) {
        const Error why = nsid ? Error(Errc::kCorrupt, "it named no namespace") : nsid.error();
        notes_.push_back(fmt::format("{} at {} did not: {}", box_text(leg), offer.place.address,
                                     error_text(why)));
        co_return std::move(offer);
      }
      leg.nsid = *nsid;
      legs_.push_back(std::move(leg));
    }
    co_return std::nullopt;
  }

  std::vector<Leg> in_order(const std::vector<Offer>& wanted) const {
    std::vector<Leg> ordered;
    for (const Offer& offer : wanted) {
      const auto leg =
          std::ranges::find_if(legs_, [&offer](const Leg& each) { return is_from(each, offer); });
      ordered.push_back(*leg);
    }
    return ordered;
  }

  std::string with_notes(const std::string& why) const {
    if (notes_.empty()) return why;
    return fmt::format("{} ({})", why, fmt::join(notes_, "; "));
  }

  env::Env& env_;
  Peers& peers_;
  DriveWish wish_;
  task::CancelToken token_;
  std::vector<Leg> legs_;
  std::vector<std::string> notes_;
};

std::string stale_text(const Board& board) {
  std::string text;
  if (!board.stale.empty()) text += fmt::format("; {} offers are stale", board.stale.size());
  if (board.unreadable > 0) text += fmt::format("; {} cannot be read", board.unreadable);
  return text;
}

}  // namespace

task::Task<Outcome<DriveRecord>> create_drive(env::Env& env, meta::Store& store, Peers& peers,
                                              DriveWish wish, task::CancelToken token) {
  if (const Result<void> sound = check_drive_name(wish.name); !sound) {
    co_return std::unexpected(std::string(sound.error().what()));
  }
  const Result<std::optional<KnownDrive>> known = co_await get_drive(store, wish.name, token);
  if (!known) co_return std::unexpected(store_text(known.error()));
  if (*known) {
    co_return std::unexpected(
        fmt::format("there is a drive {} already: take another name, or release that one with "
                    "'cairn drive release {}'",
                    wish.name, wish.name));
  }
  const Result<Board> board = co_await read_board(store, wall_ms(env), token);
  if (!board) co_return std::unexpected(store_text(board.error()));
  Making making(env, peers, wish, token);
  Outcome<std::vector<Leg>> legs = co_await making.gather(board->offers);
  if (!legs) co_return std::unexpected(legs.error() + stale_text(*board));
  DriveRecord drive{.name = wish.name,
                    .raid = wish.wish.raid,
                    .bytes = wish.wish.amount.bytes,
                    .owner = wish.owner,
                    .connect = wish.connect,
                    .legs = std::move(*legs)};
  const Result<void> put = co_await put_drive(store, drive, token);
  if (put) co_return drive;
  if (put.error() == Errc::kExists || put.error() == Errc::kMismatch) {
    co_await making.give_back();
    co_return std::unexpected(
        fmt::format("{}: nothing was made, try again", error_text(put.error())));
  }
  if (put.error() == Errc::kDenied) {
    co_await making.give_back();
    co_return std::unexpected(
        fmt::format("drive {} is not made: {}", wish.name, store_text(put.error())));
  }
  co_return std::unexpected(
      fmt::format("the metadata store did not answer: {}: whether drive {} was made is not known; "
                  "'cairn rack drives' tells when the store is back, and boxes give back what was "
                  "not used",
                  error_text(put.error()), wish.name));
}

namespace {

// Asks every box whether its leg may go. The text says why not.
task::Task<Outcome<void>> check_unused(Peers& peers, DriveRecord drive, task::CancelToken token) {
  std::vector<std::string> used;
  std::vector<std::string> silent;
  for (const Leg& leg : drive.legs) {
    const Result<uint32_t> may = co_await ask_again(
        peers, leg.place, {.verb = SpaceRequest::Verb::kMayRelease, .id = leg.id}, token);
    if (may) continue;
    if (may.error() == Errc::kMismatch) {
      used.push_back(box_text(leg));
    } else {
      silent.push_back(
          fmt::format("{} at {}: {}", box_text(leg), leg.place.address, error_text(may.error())));
    }
  }
  if (!used.empty()) {
    co_return std::unexpected(fmt::format(
        "drive {} is in use: its owner {} is connected to {}: end what serves it first ('cairn "
        "drive list' names it where it runs), or add --force: then whoever uses it loses it",
        drive.name, drive.owner, fmt::join(used, ", ")));
  }
  if (silent.empty()) co_return Outcome<void>{};
  co_return std::unexpected(fmt::format(
      "{} of {} boxes of drive {} do not answer ({}), so what the others have may be its only "
      "current copy: release it when they are back, or add --force to give back what can be now",
      silent.size(), drive.legs.size(), drive.name, fmt::join(silent, "; ")));
}

// One release, from the first look at the record to its end.
class Releasing {
 public:
  Releasing(meta::Store& store, Peers& peers, std::string name, Release how,
            task::CancelToken token)
      : store_(store), peers_(peers), name_(std::move(name)), how_(how), token_(token) {}

  task::Task<Outcome<void>> run() {
    for (int tries = 0; tries < kChangeTries; ++tries) {
      const Result<std::optional<KnownDrive>> known = co_await get_drive(store_, name_, token_);
      if (!known) co_return std::unexpected(store_text(known.error()));
      if (!*known && has_asked_) co_return Outcome<void>{};
      if (!*known) {
        co_return std::unexpected(
            fmt::format("there is no drive {}: 'cairn rack drives' names those there are", name_));
      }
      DriveRecord next = (*known)->drive;
      if (!next.is_leaving && how_ == Release::kUnused) {
        const Outcome<void> unused = co_await check_unused(peers_, next, token_);
        if (!unused) co_return unused;
      }
      if (next.is_leaving && !has_asked_) co_await ask_boxes(next.legs);
      next.is_leaving = true;
      std::erase_if(next.legs, [this](const Leg& leg) {
        return std::ranges::find(gone_, leg.id) != gone_.end();
      });
      if (next != (*known)->drive) {
        const Result<bool> replaced = co_await replace_drive(store_, **known, next, token_);
        if (!replaced && replaced.error() == Errc::kDenied) {
          co_return std::unexpected(fmt::format("the record of drive {} cannot be changed: {}",
                                                name_, store_text(replaced.error())));
        }
        // Not answered, or somebody else was faster: look again.
        if (!replaced || !*replaced) continue;
      }
      if (has_asked_) co_return outcome();
    }
    co_return std::unexpected(fmt::format(
        "the record of drive {} could not be changed: run 'cairn drive release {}' again", name_,
        name_));
  }

 private:
  task::Task<void> ask_boxes(std::vector<Leg> legs) {
    has_asked_ = true;
    const SpaceRequest::Verb verb = how_ == Release::kByForce ? SpaceRequest::Verb::kForceRelease
                                                              : SpaceRequest::Verb::kRelease;
    for (const Leg& leg : legs) {
      const Result<uint32_t> released =
          co_await ask_again(peers_, leg.place, {.verb = verb, .id = leg.id}, token_);
      if (released) {
        gone_.push_back(leg.id);
        continue;
      }
      is_used_ = is_used_ || released.error() == Errc::kMismatch;
      away_.push_back(fmt::format("{} at {}: {}", box_text(leg), leg.place.address,
                                  error_text(released.error())));
    }
  }

  Outcome<void> outcome() const {
    if (away_.empty()) return {};
    return std::unexpected(fmt::format(
        "{} of {} legs are not given back yet ({}): run 'cairn drive release {}' again {}",
        away_.size(), away_.size() + gone_.size(), fmt::join(away_, "; "), name_,
        is_used_ ? "when nobody uses it, or with --force" : "when their boxes are back"));
  }

  meta::Store& store_;
  Peers& peers_;
  const std::string name_;
  const Release how_;
  task::CancelToken token_;
  std::vector<std::string> away_;
  std::vector<ContractId> gone_;
  bool has_asked_ = false;
  bool is_used_ = false;
};

}  // namespace

task::Task<Outcome<void>> release_drive(meta::Store& store, Peers& peers, std::string name,
                                        Release how, task::CancelToken token) {
  Releasing releasing(store, peers, std::move(name), how, token);
  const Outcome<void> released = co_await releasing.run();
  co_return released;
}

Outcome<std::string> stack_of(const DriveRecord& drive) {
  std::vector<std::string> legs;
  for (const Leg& leg : drive.legs) {
    // By UUID: another drive may get the nsid one day.
    std::string text = fmt::format("nvme-tcp://{}/{}?uuid={}&hostnqn={}", leg.place.address,
                                   leg.place.nqn, uuid_text(leg.id), drive.owner);
    if (leg.place.tls) text += "&tls=required";
    // A mirror goes on without a box that is away, and must hear of it.
    const bool says = drive.connect.find("loss_timeout=") != std::string::npos;
    if (drive.raid == Raid::kMirror && !says) text += "&loss_timeout=5s";
    if (!drive.connect.empty()) text += "&" + drive.connect;
    const std::expected<fabric::Uri, std::string> uri = fabric::Uri::parse(text);
    if (!uri) return std::unexpected(uri.error());
    legs.push_back(uri->text());
  }
  if (legs.size() == 1 && drive.raid == Raid::kStripe) return legs.front();
  return fmt::format("{}({})", drive.raid == Raid::kMirror ? "mirror" : "stripe",
                     fmt::join(legs, ", "));
}

}  // namespace cairn::rack
