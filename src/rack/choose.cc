// SPDX-License-Identifier: Apache-2.0
#include "rack/choose.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/bytes.h"

namespace cairn::rack {

namespace {

constexpr size_t kLegsUsual = 2;
// Label and bitmap of a mirror are far smaller.
constexpr uint64_t kMirrorHead = kUnit;

uint64_t share(uint64_t whole, size_t legs) { return whole / legs + (whole % legs == 0 ? 0 : 1); }

// Offers that have room for a leg, the closest fit first.
std::vector<size_t> fitting(std::span<const Offer> offers, const Amount& leg) {
  std::vector<size_t> found;
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (size_t i = 0; i < offers.size(); ++i) {
    const Offer& offer = offers[i];
    if (!seen.insert({offer.box, offer.shelf}).second) continue;
    if (leg.fits(offer.spare)) found.push_back(i);
  }
  std::ranges::sort(found, [&offers](size_t a, size_t b) {
    const auto rank = [](const Offer& offer) {
      return std::tie(offer.spare.bytes, offer.spare.iops, offer.spare.bandwidth, offer.box,
                      offer.shelf);
    };
    return rank(offers[a]) < rank(offers[b]);
  });
  return found;
}

// As many as are wanted, each of another box; then, if that is allowed, others of the same boxes.
std::optional<std::vector<size_t>> take(std::span<const Offer> offers, const Wish& wish,
                                        size_t legs) {
  std::vector<size_t> chosen;
  std::vector<size_t> second;
  std::set<std::string_view> boxes;
  for (const size_t each : fitting(offers, leg_amount(wish, legs))) {
    if (chosen.size() == legs) break;
    (boxes.insert(offers[each].box).second ? chosen : second).push_back(each);
  }
  if (wish.raid == Raid::kStripe) {
    for (const size_t each : second) {
      if (chosen.size() < legs) chosen.push_back(each);
    }
  }
  if (chosen.size() < legs) return std::nullopt;
  return chosen;
}

std::string rate_text(const Amount& leg) {
  std::string text;
  if (leg.iops > 0) text += fmt::format(", {} requests", leg.iops);
  if (leg.bandwidth > 0) text += fmt::format(", {} bytes", leg.bandwidth);
  return text.empty() ? text : text + " per second";
}

std::string refusal(std::span<const Offer> offers, const Wish& wish, size_t legs) {
  if (offers.empty()) return "no box offers any space";
  const Amount leg = leg_amount(wish, legs);
  const size_t found = fitting(offers, leg).size();
  uint64_t max = 0;
  for (const Offer& offer : offers) max = std::max(max, offer.spare.bytes);
  return fmt::format(
      "{} of {} shelves have {}{} to spare, which each of {} legs{} needs; the largest has {}",
      found, offers.size(), text_bytes(leg.bytes), rate_text(leg), legs,
      wish.raid == Raid::kMirror ? ", on a box of its own," : "", text_bytes(max));
}

}  // namespace

Amount leg_amount(const Wish& wish, size_t legs) {
  const Amount& all = wish.amount;
  if (wish.raid == Raid::kMirror) {
    return {align_up(all.bytes, kUnit) + kMirrorHead, all.iops, all.bandwidth};
  }
  return {align_up(share(all.bytes, legs), kUnit), share(all.iops, legs),
          share(all.bandwidth, legs)};
}

std::expected<std::vector<size_t>, std::string> choose(std::span<const Offer> offers,
                                                       const Wish& wish) {
  if (wish.amount.bytes == 0 || wish.amount.bytes > kBytesMax - 2 * kUnit) {
    return std::unexpected("a drive has a size, of less than 64 PiB");
  }
  const size_t min = wish.raid == Raid::kMirror ? 2 : 1;
  if (wish.legs != 0 && (wish.legs < min || wish.legs > kLegsMax)) {
    return std::unexpected(fmt::format("a drive of this kind has {} to {} legs", min, kLegsMax));
  }
  const size_t first = wish.legs == 0 ? kLegsUsual : wish.legs;
  const bool may_grow = wish.legs == 0 && wish.raid == Raid::kStripe;
  for (size_t legs = first; legs <= (may_grow ? kLegsMax : first); ++legs) {
    if (const auto chosen = take(offers, wish, legs)) return *chosen;
  }
  return std::unexpected(refusal(offers, wish, first));
}

}  // namespace cairn::rack
