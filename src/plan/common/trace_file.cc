// SPDX-License-Identifier: Apache-2.0
#include "plan/common/trace_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/words.h"
#include "world/posix/fd.h"

namespace cairn::plan {

namespace {

class FileSource final : public trace::ByteSource {
 public:
  FileSource(posix::Fd file, uint64_t& taken) : file_(std::move(file)), taken_(taken) {}

  trace::Outcome<size_t> read(MutableBytes into) override {
    for (;;) {
      const ssize_t got = ::read(file_.get(), into.data(), into.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) {
        return std::unexpected(trace::Mistake{
            .text = fmt::format("cannot be read after {} bytes ({})", taken_, strerror(errno))});
      }
      taken_ += static_cast<uint64_t>(got);
      return static_cast<size_t>(got);
    }
  }

 private:
  posix::Fd file_;
  uint64_t& taken_;
};

}  // namespace

Attempt<TraceFile> TraceFile::open(const std::string& path, const trace::ReaderOptions& options) {
  posix::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) {
    return refuse(fmt::format("cannot open the trace {} ({})", in_quotes(path), strerror(errno)));
  }
  struct stat status{};
  if (::fstat(file.get(), &status) == 0 && S_ISDIR(status.st_mode)) {
    return refuse(fmt::format("{} is a folder: name a trace in it", in_quotes(path)));
  }
  auto taken = std::make_unique<uint64_t>(0);
  trace::Outcome<trace::Reader> reader =
      trace::Reader::open(std::make_unique<FileSource>(std::move(file), *taken), options);
  if (!reader) return refuse(reader.error().about(in_quotes(path)));
  return TraceFile(path, std::move(*reader), std::move(taken),
                   static_cast<uint64_t>(std::max<off_t>(status.st_size, 0)));
}

Attempt<std::optional<trace::Record>> TraceFile::next() {
  trace::Outcome<std::optional<trace::Record>> record = reader_.next();
  if (!record) return refuse(record.error().about(in_quotes(path_)));
  return *record;
}

double TraceFile::part_read() const {
  return size_ == 0 ? 0 : static_cast<double>(*taken_) / static_cast<double>(size_);
}

flash::TimedRequest timed_request(const trace::Record& record, uint64_t cookie) {
  constexpr uint64_t kSector = flash::kSectorBytes;
  const uint64_t first = record.offset / kSector;
  const uint64_t end = (record.offset + record.bytes + kSector - 1) / kSector;
  return {.arrival = record.arrival,
          .request = {.op = record.write ? flash::Op::kWrite : flash::Op::kRead,
                      .lba = first,
                      .sectors = static_cast<uint32_t>(end - first),
                      .cookie = cookie}};
}

Attempt<std::vector<flash::TimedRequest>> parse_mqsim_trace(std::string_view text) {
  trace::Outcome<trace::Reader> reader =
      trace::Reader::open(std::make_unique<trace::TextSource>(std::string(text)),
                          {.format = "mqsim", .from_zero = false});
  if (!reader) return refuse(reader.error().about("the trace"));
  std::vector<flash::TimedRequest> requests;
  for (;;) {
    const trace::Outcome<std::optional<trace::Record>> record = reader->next();
    if (!record) return refuse(record.error().about("the trace"));
    if (!*record) return requests;
    requests.push_back(timed_request(**record, requests.size()));
  }
}

}  // namespace cairn::plan
