// SPDX-License-Identifier: Apache-2.0
#include "server/common/advice.h"

#include <fmt/format.h>

#include <optional>

#include "base/error_text.h"
#include "base/words.h"
#include "fabric/host/remote_drive.h"
#include "world/posix/holder.h"

namespace cairn::server {

namespace {

std::string advice_for(const drive::Spec& drive, const Error& error) {
  const bool is_file = !drive.path.empty();
  switch (error.code()) {
    case Errc::kNotFound:
      return drive.size == 0 ? "add ,size=8G to have the file made" : "make its folder first";
    case Errc::kExists:
      return "end what uses it ('cairn drive list' lists what is served), or name another";
    case Errc::kDenied:
      return "change its owner or mode, or run as its owner";
    case Errc::kNoSpace:
      return "free some space, or choose a smaller size";
    case Errc::kUnsupported:
      return is_file ? "add ,direct=off to go through the page cache" : "name a file";
    case Errc::kLimit:
      return is_file ? "raise the limit of open files ('ulimit -n')" : "choose a smaller size";
    default:
      return "check what is there, or name another";
  }
}

}  // namespace

Problem cannot_serve(const drive::Spec& drive, const Error& error) {
  return {fmt::format("drive {} cannot be served: {}: {}", in_quotes(drive.text()),
                      error_text(error), advice_for(drive, error))};
}

Problem cannot_serve(const nvme::NamespaceOptions& options, const Error& error) {
  if (options.stack.empty()) return cannot_serve(options.drive, error);
  return {fmt::format("stack {} cannot be served as namespace {}: {}", in_quotes(options.stack),
                      options.nsid, error_text(error))};
}

std::string_view next_after(const Error& failure) {
  if (failure == Errc::kNoSpace) return "free some space where its file is";
  if (fabric::RemoteDrive::is_of_replacement(failure)) {
    return "bring back the medium that was behind it, or serve the new one ('cairn drive "
           "remove', then 'add')";
  }
  return "look after its file or disk";
}

std::string listener_text(const std::string& path) {
  const std::optional<int> process = posix::listening_process(path);
  return process ? fmt::format(" (process {})", *process) : "";
}

Problem cannot_listen(const env::Address& at, const Error& error) {
  std::string next = "name an address of this machine";
  const bool is_local = at.family == env::Address::Family::kLocal;
  if (error == Errc::kExists) {
    next = fmt::format("end what listens there{}, or choose another {}",
                       is_local ? listener_text(at.path) : "", is_local ? "path" : "port");
  }
  if (error == Errc::kDenied) next = "choose a port from 1024, or run as root";
  return {fmt::format("cannot listen at {}: {}: {}", at.text(), error_text(error), next)};
}

}  // namespace cairn::server
