// SPDX-License-Identifier: BSD-3-Clause
// What a bare machine needs of a platform that it has not made itself, such as one of SystemC modules: the
// way to a function's registers, and a clock. Without them, functions are HCAs behind the C API and time
// passes there.
#ifndef HCASIM_DRIVER_BARE_PCIE_H
#define HCASIM_DRIVER_BARE_PCIE_H

#include <cstdint>

#include "card/api/hca_api.h"

namespace hcasim::bare {

// A function whose BARs are placed, with memory space, bus master and MSI-X enabled. Interrupts come in by
// Function::raise().
class Pcie {
 public:
  // BAR0, bytes as they lie on the bus. len: 1, 2, 4 or 8; of writes also a multiple of 8 up to 256.
  virtual void read(std::uint64_t offset, void* bytes, unsigned len) = 0;
  virtual void write(std::uint64_t offset, const void* bytes, unsigned len) = 0;
  // Function level reset; afterwards the function is enabled again.
  virtual void reset() = 0;

 protected:
  ~Pcie() = default;
};

// A function of the model that is reached by another way than the C API, which still has its counters, faults
// and its time.
class Attachment : public Pcie {
 public:
  virtual ~Attachment() = default;
  virtual hca_t* handle() = 0;
  // Vectors that were signalled since.
  virtual std::uint64_t take_interrupts() = 0;
};

class Function;

class Clock {
 public:
  virtual std::int64_t now() const = 0;  // ns
  // Lets time pass: to `until` at most, and no further than an interrupt. How often the driver looks at its
  // queues between interrupts is the clock's choice, by returning earlier.
  virtual void wait(std::int64_t until) = 0;
  // A function that had no interrupt pending has one now. Called while the HCAs run: it is no place to serve
  // it.
  virtual void raised(Function&) {}
  // Whether it has interrupts served (Function::dispatch()) within wait(), so that nobody need look for more.
  virtual bool serves() const { return false; }

 protected:
  ~Clock() = default;
};

}  // namespace hcasim::bare
#endif
