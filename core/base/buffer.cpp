#include "base/buffer.hpp"

#include <new>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace polyleaf {
namespace {

constexpr std::align_val_t kLine{64};

#ifdef __linux__
constexpr std::size_t kLarge = std::size_t{1} << 20;       // bytes: from here on memory of its own
constexpr std::size_t kLargePages = std::size_t{1} << 22;  // and large pages, where the system leaves that to programs

bool has_own_memory(std::size_t bytes) { return bytes >= kLarge; }

void* own_memory(std::size_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  if (bytes >= kLargePages) madvise(data, bytes, MADV_HUGEPAGE);  // a wish: it may be refused
#endif
  return data;
}

void free_own_memory(void* data, std::size_t bytes) { munmap(data, bytes); }
#else
bool has_own_memory(std::size_t) { return false; }
void* own_memory(std::size_t) { return nullptr; }
void free_own_memory(void*, std::size_t) {}
#endif

}  // namespace

void* take_memory(std::size_t bytes) {
  return has_own_memory(bytes) ? own_memory(bytes) : ::operator new(bytes, kLine);
}

void give_back_memory(void* data, std::size_t bytes) {
  if (has_own_memory(bytes))
    free_own_memory(data, bytes);
  else
    ::operator delete(data, kLine);
}

}  // namespace polyleaf
