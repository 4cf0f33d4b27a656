# Defines RocksDB::rocksdb from Debian's librocksdb-dev (the shared library).
find_path(RocksDB_INCLUDE_DIR rocksdb/db.h)
find_library(RocksDB_LIBRARY NAMES librocksdb.so)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(RocksDB REQUIRED_VARS RocksDB_INCLUDE_DIR RocksDB_LIBRARY)
if(RocksDB_FOUND AND NOT TARGET RocksDB::rocksdb)
  add_library(RocksDB::rocksdb UNKNOWN IMPORTED)
  set_target_properties(RocksDB::rocksdb PROPERTIES IMPORTED_LOCATION ${RocksDB_LIBRARY}
                        INTERFACE_INCLUDE_DIRECTORIES ${RocksDB_INCLUDE_DIR})
endif()
