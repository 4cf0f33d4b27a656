# A build without the web page.
    .section .rodata.troupe_web, "a"
    .balign 8
    .globl troupe_web_assets
    .hidden troupe_web_assets
troupe_web_assets:
    .long 0
    .section .note.GNU-stack, "", @progbits
