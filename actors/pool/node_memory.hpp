#pragma once
// Memory for the objects of which a pool has many: runs, jobs, and the nodes of the lines that they stand in.
// A long queue is larger than any cache, and objects that lie together in large pages are found faster. Freed
// memory is used again for objects of the same size, and is never returned to the system.

#include <boost/pool/singleton_pool.hpp>

#include <atomic>
#include <cstdlib>
#include <new>
#include <sched.h>
#include <sys/mman.h>

namespace troupe {

/// Allocates the blocks of a Boost pool. Large blocks lie in huge pages, where the kernel offers these.
struct huge_blocks {
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  static constexpr size_type page = size_type{2} << 20;
  static char* malloc(size_type bytes) {
    if (bytes <= page / 2)
      return static_cast<char*>(std::malloc(bytes));
    bytes = (bytes + page - 1) / page * page;
    auto* const block = static_cast<char*>(std::aligned_alloc(page, bytes));
    if (block)
      ::madvise(block, bytes, MADV_HUGEPAGE); // without huge pages the block is still good
    return block;
  }
  static void free(char* block) { std::free(block); }
};

/// Held for a few nanoseconds: a mutex of the system took a tenth of the time of an event with many grants.
class brief_lock {
public:
  void lock() {
    while (taken_.test_and_set(std::memory_order_acquire))
      ::sched_yield(); // its holder may wait for this processor
  }
  void unlock() { taken_.clear(std::memory_order_release); }

private:
  std::atomic_flag taken_;
};

/// Allocates nodes of maps and full leaves of B-trees from pools, one for each size, which all threads share.
/// Everything smaller or larger comes from the ordinary heap.
template <class T>
struct node_allocator {
  using value_type = T;
  node_allocator() = default;
  template <class U>
  node_allocator(const node_allocator<U>&) {} // containers convert one into another
  friend bool operator==(const node_allocator&, const node_allocator&) { return true; }

  T* allocate(std::size_t count) {
    void* memory = nullptr;
    if (is_node(count))
      memory = node_pool<sizeof(T)>::malloc();
    else if (is_leaf(count))
      memory = node_pool<leaf_bytes>::malloc();
    else
      return static_cast<T*>(::operator new(count * sizeof(T)));
    if (!memory)
      throw std::bad_alloc();
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) {
    if (is_node(count))
      node_pool<sizeof(T)>::free(memory);
    else if (is_leaf(count))
      node_pool<leaf_bytes>::free(memory);
    else
      ::operator delete(memory);
  }

private:
  struct of_this_file {};
  template <std::size_t Bytes> // the first block has 32 nodes, each next one twice as many, up to a huge page
  using node_pool = boost::singleton_pool<of_this_file, Bytes, huge_blocks, brief_lock, 32,
                                          unsigned((huge_blocks::page - 4096) / Bytes)>;
  static constexpr std::size_t leaf_bytes = 256; // size of a full leaf of absl's B-trees
  static_assert(alignof(T) <= alignof(std::max_align_t));
#ifdef __SANITIZE_ADDRESS__ // the sanitizer checks only memory of the heap
  static constexpr bool pooled = false;
#else
  static constexpr bool pooled = true;
#endif
  static constexpr bool is_node(std::size_t count) { return pooled && count == 1 && sizeof(T) >= 64; }
  static constexpr bool is_leaf(std::size_t count) {
    return pooled && sizeof(T) == 8 && count * 8 > leaf_bytes * 3 / 4 && count * 8 <= leaf_bytes;
  }
};

} // namespace troupe
