// SPDX-License-Identifier: Apache-2.0
// The numbers of LMDB's data format 1 on 64-bit little-endian machines (lmdb 0.9, mdb.c: MDB_page, MDB_node, MDB_meta, MDB_db),
// shared by reader and writer.
#pragma once

#include <cstdint>

namespace welkin::data::lmdb {

inline constexpr uint32_t kMagic = 0xBEEFC0DE;
inline constexpr uint32_t kVersion = 1;
inline constexpr uint64_t kPageHeader =
    16;  // page number 8, pad 2, flags 2, then lower 2 and upper 2, or the count of overflow pages 4
inline constexpr uint64_t kNodeHeader = 8;  // low 2, high 2, flags 2, key size 2
inline constexpr uint64_t kNoPage = ~uint64_t{0};

enum PageFlag : uint16_t { Branch = 1, Leaf = 2, Overflow = 4, Meta = 8 };
enum NodeFlag : uint16_t { BigData = 1, SubData = 2, DupData = 4 };

// From the start of a meta page.
inline constexpr uint64_t kMetaMagic = 16, kMetaVersion = 20, kMetaMapSize = 32, kMetaFree = 40, kMetaMain = 88,
                          kMetaLastPage = 136, kMetaTransaction = 144, kMetaBytes = 152;
// From the start of an MDB_db: page size (of the first one only), flags, depth, branch, leaf and overflow pages, entries, root.
inline constexpr uint64_t kDbPad = 0, kDbFlags = 4, kDbDepth = 6, kDbBranches = 8, kDbLeaves = 16, kDbOverflows = 24,
                          kDbEntries = 32, kDbRoot = 40;

}  // namespace welkin::data::lmdb
