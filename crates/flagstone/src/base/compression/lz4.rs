//! LZ4 blocks through the C library.
