// SPDX-License-Identifier: BSD-3-Clause
// Protection domains and memory keys of the bare driver.
#ifndef HCASIM_DRIVER_BARE_MR_H
#define HCASIM_DRIVER_BARE_MR_H

#include "driver/bare/device.h"

namespace hcasim::bare {

// A number that one command allocates and another frees: PD, XRCD, Q counter set.
class Pd {
 public:
  explicit Pd(Device& device);
  ~Pd();
  Pd(const Pd&) = delete;
  Pd& operator=(const Pd&) = delete;
  std::uint32_t pdn() const { return pdn_; }
  CommandResult destroy();

 private:
  Device& device_;
  std::uint32_t pdn_ = 0;
  std::uint64_t epoch_;
  bool live_ = false;
};

// Access rights of a memory key (mkc lr, lw, rr, rw, a).
enum Access : unsigned {
  kLocalRead = 1,
  kLocalWrite = 2,
  kRemoteRead = 4,
  kRemoteWrite = 8,
  kRemoteAtomic = 16,
  kAllAccess = 31,
};

// An entry of an indirect key.
struct KlmEntry {
  std::uint32_t bytes;
  std::uint32_t key;
  std::uint64_t va;
};

// The contents of mkc.
struct MkeySpec {
  std::uint32_t pd = 0;
  unsigned access = kAllAccess;
  unsigned mode = 1;  // 0 PA, 1 MTT, 2 KLM, 3 KSM
  std::uint64_t start = 0, len = 0;
  bool paged = false;  // entries of `mtt` grant the access of their flags, and fault otherwise (pg_access)
  bool length64 = false, free = false, umr_en = false, remote_invalidate = false;
  unsigned log_page = 12;             // MTT: page, KSM: entity; bytes, log2
  std::uint8_t key = 0x42;            // low byte
  std::uint32_t qpn = 0xffffff;       // 0xffffff: any QP
  std::size_t reserve_octowords = 0;  // room for the list of a later UMR
  std::vector<std::uint64_t> mtt;
  std::vector<KlmEntry> klm;
};

class Mr {
 public:
  Mr(Device& device, const MkeySpec& spec);
  ~Mr();
  Mr(const Mr&) = delete;
  Mr& operator=(const Mr&) = delete;

  // [off, off + len) of a buffer by its page list. iova: virtual address of its first byte (default: the bus
  // address of a contiguous buffer); must agree with `off` modulo the page size.
  static MkeySpec of(const Pd& pd, const Buffer& buffer, unsigned access = kAllAccess, unsigned log_page = 12,
                     std::size_t off = 0, std::size_t len = 0, std::uint64_t iova = 0);
  // All of bus address space.
  static MkeySpec physical(const Pd& pd, unsigned access = kLocalRead | kLocalWrite);

  std::uint32_t key() const { return index_ << 8 | key_; }
  std::uint32_t index() const { return index_; }
  std::uint64_t start() const { return start_; }
  std::uint64_t len() const { return len_; }
  void set_key_byte(std::uint8_t key) { key_ = key; }  // call after a UMR changed it
  CommandResult query();
  CommandResult destroy();

 private:
  Device& device_;
  std::uint32_t index_ = 0;
  std::uint8_t key_;
  std::uint64_t start_, len_, epoch_;
  bool live_ = false;
};

// CREATE_MKEY's input for a key, for tests to modify.
Mailbox create_mkey_mailbox(const MkeySpec& spec);
// mkc in the form of a UMR's mkey segment.
void fill_mkc(std::uint8_t* mkc, const MkeySpec& spec);

}  // namespace hcasim::bare
#endif
