//! Names the shared library as RocksDB's: `librocksdb.so.11.9`, or as `FLAGSTONE_CAPI_SONAME` says.
//! Functions whose parameters have changed since that version have its parameters.

fn main() {
    println!("cargo:rerun-if-env-changed=FLAGSTONE_CAPI_SONAME");
    let version = std::env::var("FLAGSTONE_CAPI_SONAME").unwrap_or_else(|_| "11.9".to_string());
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,librocksdb.so.{version}");
    }
    let number = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    let Some(major) = number else {
        panic!("FLAGSTONE_CAPI_SONAME={version}: it must be a version of RocksDB, such as 7.8");
    };
    for change in [9, 11] {
        println!("cargo:rustc-check-cfg=cfg(before_{change})");
        if major < change {
            println!("cargo:rustc-cfg=before_{change}");
        }
    }
}
