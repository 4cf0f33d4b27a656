// Loads libraries when one of their functions is first called: libtroupe.so has its own definitions of these
// functions, made here, so that a host which uses no TLS does not map OpenSSL. lazy_calls.sh writes
// lazy_calls.inc, which has one `troupe_lazy_call NAME, SONAME` for each function.

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>

namespace {

/// The layout that the assembler below writes; the function's name follows it.
struct lazy_call {
  void* function; ///< null until the first call
  const char* soname;
};

} // namespace

/// Safe from any thread: all threads find the same function. The package of libcaf_core depends on these
/// libraries, so they are installed.
extern "C" __attribute__((visibility("hidden"), used)) void* troupe_resolve_lazy_call(lazy_call* call) {
  const auto* name = reinterpret_cast<const char*>(call + 1);
  void* library = ::dlopen(call->soname, RTLD_NOW | RTLD_LOCAL);
  void* function = library ? ::dlsym(library, name) : nullptr;
  if (!function) {
    std::fprintf(stderr, "troupe: %s\n", ::dlerror());
    std::abort();
  }
  __atomic_store_n(&call->function, function, __ATOMIC_RELEASE);
  return function;
}

// A definition jumps to the function, or to the resolver with r11, which callers do not use. All registers
// that may hold an argument are kept: six general registers, rax (the number of vector registers), and eight
// vector registers.
asm(R"(
.pushsection .text.troupe_lazy_calls, "ax", @progbits
.type troupe_enter_lazy_call, @function
troupe_enter_lazy_call:
  .cfi_startproc
  endbr64
  .irp register, rax, rdi, rsi, rdx, rcx, r8, r9
  pushq %\register
  .cfi_adjust_cfa_offset 8
  .endr
  subq $128, %rsp
  .cfi_adjust_cfa_offset 128
  .irp n, 0, 1, 2, 3, 4, 5, 6, 7
  movaps %xmm\n, 16*\n(%rsp)
  .endr
  movq %r11, %rdi
  call troupe_resolve_lazy_call
  movq %rax, %r11
  .irp n, 0, 1, 2, 3, 4, 5, 6, 7
  movaps 16*\n(%rsp), %xmm\n
  .endr
  addq $128, %rsp
  .cfi_adjust_cfa_offset -128
  .irp register, r9, r8, rcx, rdx, rsi, rdi, rax
  popq %\register
  .cfi_adjust_cfa_offset -8
  .endr
  jmp *%r11
  .cfi_endproc
  .size troupe_enter_lazy_call, . - troupe_enter_lazy_call
.popsection

.macro troupe_lazy_call name, soname
  .pushsection .rodata.str1.1, "aMS", @progbits, 1
.Lsoname_\@:
  .asciz "\soname"
  .popsection
  .pushsection .data.troupe_lazy_calls, "aw"
  .balign 8
.Lcall_\@:
  .quad 0, .Lsoname_\@
  .asciz "\name"
  .popsection
  .pushsection .text.troupe_lazy_calls, "ax", @progbits
  .globl \name
  .hidden \name
  .type \name, @function
\name:
  .cfi_startproc
  endbr64
  movq .Lcall_\@(%rip), %r11
  testq %r11, %r11
  jz 1f
  jmp *%r11
1:
  leaq .Lcall_\@(%rip), %r11
  jmp troupe_enter_lazy_call
  .cfi_endproc
  .size \name, . - \name
  .popsection
.endm
)");

#include "lazy_calls.inc"
