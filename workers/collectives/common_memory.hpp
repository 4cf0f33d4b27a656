#pragma once
// Memory that all ranks of a group on one host map: each has a part of it, and reaches those of the others.

#include "model/result.hpp"
#include "workers/collective.hpp"

namespace troupe {

class common_memory {
public:
  common_memory(int rank, int size) : rank_(rank), size_(size) {}

  /// Maps `path`, with a part of `bytes` for each rank; one of them makes it first, with `make`. Zero.
  /// `no_space`, `io`.
  result<std::shared_ptr<std::byte>> map(const std::string& path, std::size_t bytes, bool make) const;
  /// All ranks have mapped it: from now on it is found, until it goes with its last owner. In the same order
  /// on all ranks.
  void add(const std::shared_ptr<std::byte>& mine, std::size_t bytes);

  /// The same on ranks whose operation is on the same part of the same memory, in place, and 0 where a buffer
  /// is elsewhere. (A hash: that of two different parts is the same once in 2^32 times.)
  std::uint32_t spot_of(const operation& x) const;
  /// Where rank 0 has what this rank has at `mine`, which was found, and how much further each next rank has
  /// it.
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
