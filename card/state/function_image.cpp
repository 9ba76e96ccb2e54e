// SPDX-License-Identifier: BSD-3-Clause
#include "card/state/function_image.h"

#include <zstd.h>

#include <memory>

#include "card/state/load.h"
#include "card/state/save.h"
#include "card/state/version.h"
#include "firmware-stub/firmware.h"
#include "firmware-stub/image_stream.h"
#include "model/device.h"

namespace hcasim::saved {

namespace {

constexpr std::uint32_t kFirstImages = 2;  // of the versions: before it their heads were others

struct Head {
  std::string kind = "virtual function", link, generation;

  explicit Head(const fw::Options& o)
      : link(o.link == fw::Link::kEthernet ? "ethernet" : "infiniband"), generation(o.generation->key) {}
  template <class Archive>
  void list_state(Archive& a) {
    one(a, "kind", kind);
    one(a, "link", link);
    one(a, "generation", generation);
  }

 private:
  template <class Archive>
  static void one(Archive& a, const char* name, std::string& own) {
    if constexpr (Archive::kLoads) {
      std::string saved;
      a(name, saved);
      a.check(saved == own, "the image is of another kind of card");
    } else {
      a(name, own);
    }
  }
};

template <class T>
struct Part {
  T& of;
  template <class Archive>
  void list_state(Archive& a) {
    of.list_image(a);
  }
};

struct Image {
  explicit Image(fw::Firmware& of) : head(of.options()), function{of.function()}, firmware{of} {}
  Head head;
  Part<Function> function;
  Part<fw::Firmware> firmware;

  template <class Archive>
  void list_state(Archive& a) {
    a("head", head);
    if constexpr (!Archive::kNames) a("function", function);  // where nothing is that others refer to
    a("firmware", firmware);
  }
};

std::string write(Image image) {
  Names names;
  StateNames naming(names);
  image.list_state(naming);
  TaggedWriter writer(kVersion);
  StateSave archive(writer, names);
  image.list_state(archive);
  return std::move(writer).finish();
}

// Its head.
void read_head(fw::Firmware& of, StateLoad& archive, const TaggedReader& reader) {
  if (reader.version() < kFirstImages || reader.version() > kVersion)
    throw StateError("the image is of another version");
  Image image(of);
  archive("head", image.head);
}

void read(fw::Firmware& into, std::string_view bytes) {
  into.clear_for_image();
  TaggedReader reader(bytes);
  StateLoad archive(reader);
  archive.functions_are(into.device().functions());
  archive.function_is(into.function().id());
  Image image(into);
  image.list_state(archive);
  archive.finish();
}

struct Free {
  void operator()(ZSTD_CCtx* c) const { ZSTD_freeCCtx(c); }
  void operator()(ZSTD_DCtx* c) const { ZSTD_freeDCtx(c); }
};

// The window of what both images have, log2 of bytes, as wide as zstd takes it.
int window(std::size_t bytes) {
  int log = ZSTD_cParam_getBounds(ZSTD_c_windowLog).lowerBound;
  while (std::size_t{1} << log < bytes) ++log;
  return std::min(log, ZSTD_cParam_getBounds(ZSTD_c_windowLog).upperBound);
}

std::size_t must(std::size_t result) {
  if (ZSTD_isError(result)) throw StateError(std::string("zstd: ") + ZSTD_getErrorName(result));
  return result;
}

}  // namespace

std::string FunctionImages::save(fw::Firmware& of) {
  of.device().dma().loans().settle_all(of.function().id());
  return write(Image(of));
}

bool FunctionImages::suits(fw::Firmware& into, std::string_view image) {
  try {
    TaggedReader reader(image);
    StateLoad archive(reader);
    read_head(into, archive, reader);
    return true;
  } catch (const StateError&) {
    return false;
  }
}

bool FunctionImages::load(fw::Firmware& into, std::string_view image) {
  if (!suits(into, image)) return false;
  const std::string before = save(into);
  try {
    read(into, image);
    if (!into.image_fits()) throw StateError("the function may not have what the image has");
  } catch (const std::exception&) {  // memory that the image asks for may not be there
    read(into, before);
    into.device().migration().restored(into.function().id());
    return false;
  }
  into.image_loaded();
  return true;
}

std::string FunctionImages::update(std::string_view from, std::string_view to) {
  const std::unique_ptr<ZSTD_CCtx, Free> zstd(ZSTD_createCCtx());
  if (!zstd) throw std::bad_alloc();
  must(ZSTD_CCtx_setParameter(zstd.get(), ZSTD_c_checksumFlag, 1));
  must(ZSTD_CCtx_setParameter(zstd.get(), ZSTD_c_windowLog, window(from.size() + to.size())));
  must(ZSTD_CCtx_setParameter(zstd.get(), ZSTD_c_enableLongDistanceMatching, from.empty() ? 0 : 1));
  must(ZSTD_CCtx_refPrefix(zstd.get(), from.data(), from.size()));
  std::string update(ZSTD_compressBound(to.size()), '\0');
  update.resize(must(ZSTD_compress2(zstd.get(), update.data(), update.size(), to.data(), to.size())));
  return update;
}

std::optional<std::string> FunctionImages::updated(std::string_view from, std::string_view update) {
  const unsigned long long size = ZSTD_getFrameContentSize(update.data(), update.size());
  if (size > fw::kMaxImage) return std::nullopt;  // or unknown, or an error: these are larger still
  try {
    const std::unique_ptr<ZSTD_DCtx, Free> zstd(ZSTD_createDCtx());
    if (!zstd) return std::nullopt;
    must(ZSTD_DCtx_refPrefix(zstd.get(), from.data(), from.size()));
    std::string image(size, '\0');
    if (must(ZSTD_decompressDCtx(zstd.get(), image.data(), size, update.data(), update.size())) != size)
      return std::nullopt;
    return image;
  } catch (const std::exception&) {  // memory that the update asks for may not be there
    return std::nullopt;
  }
}

}  // namespace hcasim::saved
