// SPDX-License-Identifier: BSD-3-Clause
#include "traces/packing.h"

#include <libdeflate.h>
#include <zstd.h>

#include <new>

namespace hcasim::traces {
void Packer::Free::operator()(ZSTD_CCtx_s* context) const { ZSTD_freeCCtx(context); }
void Unpacker::Free::operator()(ZSTD_DCtx_s* context) const { ZSTD_freeDCtx(context); }
void Unpacker::Free::operator()(libdeflate_decompressor* d) const { libdeflate_free_decompressor(d); }

// Of records, -1 gives what deflate gives at its fastest, in a third of its time; below 1, single bytes are
// not coded.
Packer::Packer(Of what) : level_(what == Of::kRecords ? -1 : 1), context_(ZSTD_createCCtx()) {
  if (!context_) throw std::bad_alloc();
}
Packer::~Packer() = default;

std::size_t Packer::pack(const std::uint8_t* raw, std::size_t size, std::vector<std::uint8_t>& to,
                         std::size_t head) {
  to.resize(head + ZSTD_compressBound(size));
  const std::size_t n =
      ZSTD_compressCCtx(context_.get(), to.data() + head, to.size() - head, raw, size, level_);
  if (ZSTD_isError(n)) throw std::bad_alloc();  // there is room, so nothing else can be wrong
  to.resize(head + n);
  return n;
}

Unpacker::Unpacker() : zstd_(ZSTD_createDCtx()) {}
Unpacker::~Unpacker() = default;

bool Unpacker::unpack(Packing how, const std::uint8_t* packed, std::size_t stored, std::uint8_t* raw,
                      std::size_t size) {
  if (how == Packing::kZstd)
    return zstd_ && ZSTD_decompressDCtx(zstd_.get(), raw, size, packed, stored) == size;
  if (!deflate_) deflate_.reset(libdeflate_alloc_decompressor());
  std::size_t out = 0;
  return deflate_ &&
         libdeflate_deflate_decompress(deflate_.get(), packed, stored, raw, size, &out) ==
             LIBDEFLATE_SUCCESS &&
         out == size;
}

}  // namespace hcasim::traces
