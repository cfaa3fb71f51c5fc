//! Names the shared library as RocksDB's: `librocksdb.so.11.9`, or as `FLAGSTONE_CAPI_SONAME` says.

fn main() {
    println!("cargo:rerun-if-env-changed=FLAGSTONE_CAPI_SONAME");
    let version = std::env::var("FLAGSTONE_CAPI_SONAME").unwrap_or_else(|_| "11.9".to_string());
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,librocksdb.so.{version}");
    }
}
