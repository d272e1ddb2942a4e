// SPDX-License-Identifier: Apache-2.0
#include "trace/format.h"

#include <gtest/gtest.h>

#include <sstream>

#include "trace/reader.h"

namespace cairn::trace {
namespace {

Outcome<std::vector<Record>> read_all(std::string text, const ReaderOptions& options = {}) {
  Outcome<Reader> reader = Reader::open(std::make_unique<TextSource>(std::move(text)), options);
  if (!reader) return std::unexpected(reader.error());
  std::vector<Record> all;
  for (;;) {
    Outcome<std::optional<Record>> next = reader->next();
    if (!next) return std::unexpected(next.error());
    if (!*next) return all;
    all.push_back(**next);
  }
}

// "0 R 4096+512 v0", one to a line.
std::string told(const Outcome<std::vector<Record>>& records) {
  if (!records) return records.error().about("t");
  std::ostringstream out;
  for (const Record& r : *records) {
    out << r.arrival << ' ' << (r.write ? 'W' : 'R') << ' ' << r.offset << '+' << r.bytes << " v"
        << r.volume << '\n';
  }
  return out.str();
}

TEST(TraceFormat, SystorCountsSecondsAndSkipsWhatHasNoType) {
  EXPECT_EQ(told(read_all("Timestamp,Response,IOType,LUN,Offset,Size\n"
                          "1455592830.000000100,0.1,R,4,8192,4096\n"
                          "1455592830.000000150,0.1,,4,0,4096\n"
                          "1455592831.5,0.1,W,6,512,1024\n")),
            "0 R 8192+4096 v0\n1499999900 W 512+1024 v1\n");
}

TEST(TraceFormat, TencentCountsSectors) {
  EXPECT_EQ(told(read_all("1538323200,12910952,8,0,1063\n1538323201,16,128,1,1064\n")),
            "0 R 6610407424+4096 v0\n1000000000 W 8192+65536 v1\n");
}

TEST(TraceFormat, MsrCountsTicksOfAHundredNanoseconds) {
  EXPECT_EQ(told(read_all("128166372003061629,hm,1,Read,383496192,32768,113736\n"
                          "128166372003061639,hm,0,Write,0,512,1\n"
                          "128166372003061639,prn,1,Write,0,512,1\n")),
            "0 R 383496192+32768 v0\n1000 W 0+512 v1\n1000 W 0+512 v2\n");
}

TEST(TraceFormat, AlibabaCountsMicroseconds) {
  EXPECT_EQ(told(read_all("419,W,8792731648,16384,1577808000000046\n"
                          "725,R,0,4096,1577808000000050\n")),
            "0 W 8792731648+16384 v0\n4000 R 0+4096 v1\n");
}

TEST(TraceFormat, MqsimReadsAreOne) {
  EXPECT_EQ(told(read_all("10 0 8 8 1\n30 1 16 1 0\n")), "0 R 4096+4096 v0\n20 W 8192+512 v1\n");
}

TEST(TraceFormat, SnisHeadingSaysWhatIsWhere) {
  const auto records = read_all(
      "RequestID,ArrivalTime_ns,IOType(1=write),Size_bytes,InitiatorID,LBA_sector\n"
      "0,55,0,16896,8,10\n1,384,1,24064,5,20\n",
      {.from_zero = false});
  EXPECT_EQ(told(records), "55 R 5120+16896 v0\n384 W 10240+24064 v0\n");
  EXPECT_EQ((*records)[0].initiator, 8U);
  EXPECT_EQ((*records)[0].target, kUnknown);
  const auto own = read_all(
      "RequestID,ArrivalTime,IOType,Size,VolumeID,Offset,InitiatorID,TargetID\n"
      "0,55,0,16896,3,4096,8,2\n");
  EXPECT_EQ(told(own), "0 R 4096+16896 v0\n");
  EXPECT_EQ((*own)[0].target, 2U);
}

TEST(TraceFormat, FioVersionTwoWaitsBetweenRequests) {
  EXPECT_EQ(told(read_all("fio version 2 iolog\n/d/a add\n/d/a open\n/d/a read 4096 512\n"
                          "/d/a wait 20 0\n/d/b write 0 4096\n/d/a trim 0 512\n/d/a close\n")),
            "0 R 4096+512 v0\n20000 W 0+4096 v1\n");
}

TEST(TraceFormat, FioVersionThreeHasATimeInEachLine) {
  EXPECT_EQ(told(read_all("fio version 3 iolog\n19 /d/a add\n122 /d/a open\n"
                          "126 /d/a read 61440 4096\n20330 /d/a write 0 512\n")),
            "0 R 61440+4096 v0\n20204000 W 0+512 v0\n");
}

TEST(TraceFormat, BlkparseTakesOneKindOfEventAndEndsWithItsSummary) {
  const std::string text =
      "  8,0    3        1     0.000000000   697  G   W 223490 + 8 [kjournald]\n"
      "  8,0    3        2     0.000001829   697  Q   W 223490 + 8 [kjournald]\n"
      "  8,0    3        3     0.000012000   697  D   W 223490 + 16 [kjournald]\n"
      "  8,16   3        4     0.000021829   697  Q  RA 8 + 16 [cat]\n"
      "  8,0    3        5     0.000031829   697  Q FWS [kjournald]\n"
      "CPU0 (8,0):\n Reads Queued:           1,      8KiB\n";
  EXPECT_EQ(told(read_all(text)), "0 W 114426880+4096 v0\n20000 R 4096+8192 v1\n");
  EXPECT_EQ(told(read_all(text, {.format = "blkparse-issued"})), "0 W 114426880+8192 v0\n");
}

TEST(TraceFormat, AMistakeNamesFileLineAndField) {
  EXPECT_EQ(told(read_all("10 0 8 8 1\n30 0 16 x 0\n")),
            "t, line 2, field sectors: 'x' is not a whole number");
  EXPECT_EQ(told(read_all("1,0,8,0,7\n2,0,8,3,7\n")),
            "t, line 2, field IOType: '3' is neither 0 (read) nor 1 (write)");
  EXPECT_EQ(told(read_all("10 0 8 8 1\n30 0 16\n")), "t, line 2, field sectors: is missing");
  EXPECT_EQ(told(read_all("10 0 8 8 1\n30 0 16 0 1\n")),
            "t, line 2, field sectors: is zero: a request has a length");
  EXPECT_EQ(told(read_all("RequestID,ArrivalTime,Colour\n")),
            "t, line 1, field Colour: is not a column of this format: RequestID, ArrivalTime, "
            "IOType, Size, VolumeID, Offset, InitiatorID, TargetID are");
  EXPECT_EQ(told(read_all("fio version 2 iolog\n/d/a jump 4096 512\n")),
            "t, line 2, field action: 'jump' is not an action of version 2");
  EXPECT_TRUE(told(read_all("hello\nworld\n")).starts_with("t: is in no format that is known"));
  EXPECT_TRUE(told(read_all("")).starts_with("t: is empty"));
  EXPECT_TRUE(told(read_all("1,0,8,0,7\n", {.format = "csv"})).contains("--format is one of fio"));
}

}  // namespace
}  // namespace cairn::trace
