#pragma once
// Memory that all ranks of a group on one host map. Each rank has a part of it and reaches all other parts.

#include "model/result.hpp"
#include "workers/collective.hpp"

namespace troupe {

class common_memory {
public:
  common_memory(int rank, int size) : rank_(rank), size_(size) {}

  /// Maps `path`, with a part of `bytes` zero bytes for each rank. One rank calls it first, with `make`.
  /// Fails with `no_space` or `io`.
  result<std::shared_ptr<std::byte>> map(const std::string& path, std::size_t bytes, bool make) const;
  /// To be called when all ranks have mapped it, in the same order on all ranks. From then on the memory is
  /// found, until its last owner frees it.
  void add(const std::shared_ptr<std::byte>& mine, std::size_t bytes);

  /// A number that is equal on ranks whose operations work in place on the same part of the same memory, and
  /// 0 where a buffer lies elsewhere. It is a hash: two different parts have the same one once in 2^32 times.
  std::uint32_t spot_of(const operation& x) const;
  /// Where rank 0 has what this rank has at `mine`, which must have been found, and the distance from each
  /// rank's part to the next rank's.
  struct parts {
    std::byte* first = nullptr;
    std::size_t stride = 0;
  };
  parts parts_of(const std::byte* mine) const;

private:
  struct entry {
    std::weak_ptr<std::byte> owner;
    std::byte* first; ///< first byte of this rank's part
    std::size_t bytes;
    std::uint64_t number; ///< number of the call of add()
  };
  std::size_t stride(std::size_t bytes) const;
  const entry* holder(const std::byte* at, std::size_t bytes) const;

  int rank_, size_;
  std::vector<entry> entries_;
  std::uint64_t added_ = 0;
};

} // namespace troupe
