#include "buffer.hpp"

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#endif

namespace polyleaf {

#ifdef MADV_HUGEPAGE
namespace {

constexpr std::size_t kLarge = std::size_t{1} << 22;

}  // namespace

void prefer_large_pages(void* data, std::size_t bytes) {
  if (bytes < kLarge) return;
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t begin = (address + page - 1) / page * page;
  const std::uintptr_t end = (address + bytes) / page * page;
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);  // a wish: it may be refused
}
#else
void prefer_large_pages(void*, std::size_t) {}
#endif

}  // namespace polyleaf
