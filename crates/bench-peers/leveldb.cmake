# LevelDB's build takes GCC for a compiler that knows Clang's thread-safety warnings, and fails.
set(HAVE_CLANG_THREAD_SAFETY OFF CACHE BOOL "")
