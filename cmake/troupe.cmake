# Flags shared by all targets, and `troupe_library(folder SOURCES... )`.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG -ffunction-sections -fdata-sections")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g1")
set(TROUPE_SANITIZE "" CACHE STRING "sanitizers, as -fsanitize= takes them")

add_link_options($<$<CONFIG:Release>:-Wl,--gc-sections>) # libtroupe.so then maps what a host uses, not whole object files
add_compile_options(-Wall -Wextra -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU) # GCC 12 warns of std::optional, std::variant and short strings, each time wrongly so far
  add_compile_options(-Wno-maybe-uninitialized -Wno-array-bounds -Wno-free-nonheap-object -Wno-stringop-overflow -Wno-stringop-overread
                      -Wno-restrict -Wno-dangling-pointer)
endif()
cmake_host_system_information(RESULT memory QUERY TOTAL_PHYSICAL_MEMORY) # MiB
cmake_host_system_information(RESULT jobs QUERY NUMBER_OF_LOGICAL_CORES)
math(EXPR memory "${memory} / ${jobs}")
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND memory GREATER 4000) # GCC's collector walks the precompiled headers again and again: an eighth of its time
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=3000000>)
endif()
option(TROUPE_WERROR "a warning is an error; the presets say so" OFF)
if(TROUPE_WERROR)
  add_compile_options(-Werror)
endif()
add_compile_definitions(CAF_ENABLE_TYPE_ID_CHECKS BOOST_ERROR_CODE_HEADER_ONLY MSGPACK_NO_BOOST)
if(TROUPE_SANITIZE)
  add_compile_options(-fsanitize=${TROUPE_SANITIZE} -fno-sanitize=null -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TROUPE_SANITIZE})
endif()

find_program(TROUPE_CCACHE ccache)
if(TROUPE_CCACHE)
  # Precompiled headers are cached only with these flags and allowances; relative paths let worktrees share hits. Whether a
  # warning is an error, or how much memory GCC takes, changes no object. CCACHE_DEPEND makes keys of the headers' bytes: preprocessed text has no comments, and
  # a precompiled header whose headers differ from today's by a comment declares everything twice, because `#pragma once` compares
  # bytes.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess> $<$<COMPILE_LANGUAGE:CXX>:-fno-working-directory>)
  set(ccache ${CMAKE_COMMAND} -E env CCACHE_DEPEND=1 CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
    "CCACHE_IGNOREOPTIONS=-Werror* -Wno-error* --param=ggc*" CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${TROUPE_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${ccache})
  set(CMAKE_C_COMPILER_LAUNCHER ${ccache})
endif()
find_program(TROUPE_MOLD mold)
if(TROUPE_MOLD)
  add_link_options(-fuse-ld=mold -Wl,-z,keep-text-section-prefix) # cold code lies apart from the rest, as with other linkers
endif()

# For the code around what is hot (actors' shells, routes, start-up). It takes about six tenths of the code of -O2, and every host
# of libtroupe.so maps it.
function(troupe_small target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Os>)
endfunction()

# troupe_allocator(TARGET): the executable allocates with mimalloc (decision 124). Never a library, as the host of libtroupe.so
# chooses its own allocator; not under sanitizers, which bring theirs.
function(troupe_allocator target)
  if(NOT TROUPE_SANITIZE)
    find_package(mimalloc REQUIRED)
    target_link_libraries(${target} PRIVATE mimalloc)
  endif()
endfunction()

# troupe_load_late(TARGET LIBRARIES ... CALLED_BY ARCHIVE...): loads a shared library among these targets when the archives first
# call one of its functions, where there is assembly for that (runtime/embed/lazy_calls.cpp); elsewhere links it as usual.
function(troupe_load_late target)
  cmake_parse_arguments(late "" "" "LIBRARIES;CALLED_BY" ${ARGN})
  if(NOT CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
    return()
  endif()
  set(folder ${PROJECT_SOURCE_DIR}/runtime/embed)
  set(calls ${CMAKE_CURRENT_BINARY_DIR}/${target}_late/lazy_calls.inc)
  list(TRANSFORM late_LIBRARIES REPLACE "(.+)" "$<TARGET_FILE:\\1>")
  add_custom_command(OUTPUT ${calls} DEPENDS ${folder}/lazy_calls.sh ${late_LIBRARIES} ${late_CALLED_BY} VERBATIM
                     COMMAND ${folder}/lazy_calls.sh ${calls} ${late_LIBRARIES} -- ${late_CALLED_BY})
  add_library(${target}_late OBJECT ${folder}/lazy_calls.cpp ${calls})
  target_include_directories(${target}_late PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/${target}_late)
  target_compile_options(${target}_late PRIVATE -fno-toplevel-reorder)
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}_late>)
  target_link_options(${target} PRIVATE -Wl,--as-needed)
endfunction()

option(TROUPE_UNITY "compile several sources as one" OFF)
set(TROUPE_UNITY_LINES 2400 CACHE STRING "most lines of such a group in a library: more builds quicker from nothing, less after one changed file")

# troupe_unity(TARGET [LINES]): compiles the target's sources in groups, once the folder's CMakeLists.txt is read (cmake/unity.py
# says how).
function(troupe_unity target)
  if(TROUPE_UNITY)
    cmake_language(EVAL CODE "cmake_language(DEFER CALL troupe_unity_now ${target} ${ARGN} ${TROUPE_UNITY_LINES})")
  endif()
endfunction()
function(troupe_unity_now target lines)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  foreach(source ${sources}) # a source with its own flags, or one that does not go with others, stays alone
    foreach(property COMPILE_OPTIONS INCLUDE_DIRECTORIES COMPILE_DEFINITIONS SKIP_UNITY_BUILD_INCLUSION)
      get_source_file_property(own ${source} ${property})
      get_filename_component(path ${source} ABSOLUTE)
      if(own OR path IN_LIST TROUPE_UNITY_ALONE)
        list(REMOVE_ITEM sources ${source})
        list(APPEND alone ${source})
      endif()
    endforeach()
  endforeach()
  list(TRANSFORM sources PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ REGEX "^[^/]")
  list(LENGTH sources many)
  if(many LESS 2)
    return()
  endif()
  execute_process(COMMAND python3 ${PROJECT_SOURCE_DIR}/cmake/unity.py ${CMAKE_CURRENT_BINARY_DIR}/unity ${target} ${lines} ${sources}
                  OUTPUT_VARIABLE grouped OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" grouped "${grouped}")
  get_target_property(all ${target} SOURCES)
  list(FILTER all EXCLUDE REGEX "\\.cpp$")
  set_target_properties(${target} PROPERTIES SOURCES "${all};${alone};${grouped}")
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU) # types of one source are in no header, but GCC takes the group for a file that includes it
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()

# troupe_library(NAME [SOURCES...]): a static library `troupe_NAME`; without sources it takes every
# .cpp below the folder that holds this call.
function(troupe_library name)
  set(sources ${ARGN})
  if(NOT sources)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  endif()
  add_library(troupe_${name} STATIC ${sources})
  target_include_directories(troupe_${name} PUBLIC ${PROJECT_SOURCE_DIR})
  troupe_unity(troupe_${name})
endfunction()
