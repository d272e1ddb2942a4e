// SPDX-License-Identifier: Apache-2.0
#include "server/open/explain.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "base/words.h"
#include "fabric/host/tls.h"
#include "nvme/format/status_format.h"

namespace cairn::server {

namespace {

// The first NVMe status of a refused Connect; reasons of failed authentication are below it.
constexpr int32_t kStatusMin = static_cast<int32_t>(nvme::StatusCode::kConnectIncompatibleFormat);

// What goes wrong there is always said with that word.
bool is_about_tls(const Error& error) {
  return std::string_view(error.what()).find("TLS") != std::string_view::npos;
}

Problem cannot_encrypt(const Error& error, const fabric::Uri& uri, const std::string& where) {
  const std::string_view what = error.what();
  if (what == fabric::kTargetDemandsTls) {
    return {
        fmt::format("{} demands TLS: add tls=required&tls_key=FILE to the URI, with the key that "
                    "the target has for this host, which is {}",
                    where, uri.options.host_nqn)};
  }
  if (what == fabric::kTargetIsPlain) {
    return {
        fmt::format("{} speaks plain NVMe/TCP, without TLS: leave tls=required out of the URI, or "
                    "name a port with TLS, which 'cairn nvme discover' tells",
                    where)};
  }
  if (error == Errc::kDenied) {
    return {
        fmt::format("{} at {} and this host, which is {}, have no TLS key in common ({}): compare "
                    "the file of tls_key in the URI with the key that the target has for this "
                    "host; 'cairn doctor tls' says which step fails",
                    in_quotes(uri.nqn), where, uri.options.host_nqn, what)};
  }
  return {
      fmt::format("{} cannot be reached through TLS ({}): 'cairn doctor tls' with this URI says "
                  "which step fails",
                  where, error.what())};
}

// error_of() of the host makes these, with the status as their detail.
std::optional<nvme::StatusCode> status_of(const Error& error) {
  const bool is_status =
      std::string_view(error.what()).find("NVMe") != std::string_view::npos && error.detail() > 0;
  if (!is_status) return std::nullopt;
  return static_cast<nvme::StatusCode>(error.detail());
}

}  // namespace

std::string error_sentence(const Error& error) {
  const std::optional<nvme::StatusCode> code = status_of(error);
  if (!code) return error.text();
  return fmt::format("{} ({:03x}h)", nvme::name(*code), error.detail());
}

Problem cannot_connect(const Error& error, const fabric::Uri& uri, const env::Address& at) {
  const std::string where = at.text();
  if (is_about_tls(error)) return cannot_encrypt(error, uri, where);
  switch (error.code()) {
    case Errc::kUnreachable:
      return {
          fmt::format("nobody answers at {}: is a server running there? 'cairn serve --nvme-tcp {} "
                      "mem:size=1G' would start one",
                      where, where)};
    case Errc::kTimedOut:
      return {
          fmt::format("{} does not answer in time: check the address and the network on the "
                      "way, or wait longer with connect_timeout=60s in the URI",
                      where)};
    case Errc::kDenied:
      // Connect's own refusals have an NVMe status as their detail.
      if (error.detail() < kStatusMin) {
        return {
            fmt::format("{} at {} and this host, which is {}, do not trust each other ({}): "
                        "compare the files of dhchap_key and dhchap_ctrl_key in the URI with "
                        "the keys that the target has for this host",
                        in_quotes(uri.nqn), where, uri.options.host_nqn, error.what())};
      }
      return {
          fmt::format("{} at {} does not let this host in, which is {}: allow it there ('cairn "
                      "box --host NQN'), or be another with hostnqn=NQN in the URI",
                      in_quotes(uri.nqn), where, uri.options.host_nqn)};
    case Errc::kNotFound:
      return {
          fmt::format("there is no subsystem {} at {}: 'cairn nvme discover nvme-tcp://{}' "
                      "lists those that are",
                      in_quotes(uri.nqn), where, where)};
    case Errc::kLimit:
      return {fmt::format("{} takes no more connections now ({}): end others, or try later", where,
                          error_sentence(error))};
    case Errc::kReset:
    case Errc::kClosed:
    case Errc::kCorrupt:
      return {
          fmt::format("{} ended the connection ({}): check that it is an NVMe/TCP target, and "
                      "what it has logged",
                      where, error_sentence(error))};
    case Errc::kCancelled:
      return {"interrupted"};
    default:
      return {fmt::format("{} at {} cannot be used: {}", in_quotes(uri.nqn), where,
                          error_sentence(error))};
  }
}

Problem cannot_do(const std::string& what, const Error& error) {
  switch (error.code()) {
    case Errc::kCancelled:
      return {fmt::format("interrupted while {}", what)};
    case Errc::kDenied:
      return {
          fmt::format("{} was not permitted ({}): see who holds a reservation, or whether the "
                      "namespace is write protected",
                      what, error_sentence(error))};
    case Errc::kUnreachable:
      if (status_of(error) || std::string_view(error.what()).starts_with("ANA")) {
        return {
            fmt::format("{} failed ({}): the target answers, and lets nobody reach the namespace "
                        "this way now; take another path, or see 'cairn drive ana' there",
                        what, error_sentence(error))};
      }
      return {fmt::format("{} failed ({}): the target is gone; start it again or check the network",
                          what, error_sentence(error))};
    case Errc::kNoSpace:
      return {fmt::format("{} failed: the drive behind the namespace is full ({})", what,
                          error_sentence(error))};
    case Errc::kUnsupported:
      return {fmt::format("{} is nothing this target can do ({})", what, error_sentence(error))};
    default:
      return {fmt::format("{} failed: {}", what, error_sentence(error))};
  }
}

}  // namespace cairn::server
